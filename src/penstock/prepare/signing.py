"""The signature of a query: what it keeps and gives, asked of Spark without starting it."""

from __future__ import annotations

import inspect
import json
import os
import re
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock import spark_internals
from penstock.dead_letters.as_step import DeadLetters
from penstock.dead_letters.bad_records import ARRIVED, HIDDEN
from penstock.engine import resolve
from penstock.engine.build import Built, Reading, frames
from penstock.engine.session import TIME_ZONE, Engine
from penstock.facts.signature import Signature
from penstock.notation.references import is_secret
from penstock.pipeline.model import Pipeline, Query, Step
from penstock.pipeline.project import Project
from penstock.plan.code import code_hash, text_hash
from penstock.plan.expressions import Json, digest, with_constants_hidden, without_clock
from penstock.plan.trace import PlanTexts, sources_in, trace
from penstock.transforms.process import Process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SOURCE = re.compile(r"^FileSource\[(?:file:)?(.*)\]$")
_SHORTEST_SECRET = 4
_CLOCK = re.compile(r"\.(?:CurrentTimestamp|Now|CurrentDate|LocalTimestamp|CurrentTime)\"")
_FOLDING = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
_DELAY = re.compile(r"^[\s:+~!|-]*(?:Update)?EventTimeWatermark(?:Column)? .*, (.+?)$", re.MULTILINE)


def signature_of(
    engine: Engine, pipeline: Pipeline, built: Built, settings: Mapping[str, str], project: Project
) -> Signature:
    """What a query keeps and gives. The pipeline is resolved, and its rows are declared to Spark already.

    Each source is replaced by an empty stream of the columns that it hands on. So the plan names sources as the user
    does, and how records are decoded makes no difference.
    """
    code = code_hashes(pipeline, built.query, project.root)
    if isinstance(pipeline.nodes[built.query.name].spec, DeadLetters):
        streams = [one.name for one in pipeline.sources_of(built.query.name) if not one.spec.is_static]
        return Signature(engine.version, tuple(streams), code=code, zone=built.session.conf.get(TIME_ZONE) or "")
    with tempfile.TemporaryDirectory(prefix="penstock-signature-") as folder:
        # Spark's JSON leaves the values of a set out; a list has them.
        session = engine.session({**settings, "spark.sql.optimizer.inSetConversionThreshold": "1000000"})
        stand_ins: dict[str, DataFrame] = {}
        names: dict[str, str] = {}
        ids: dict[int, str] = {}
        for number, source in enumerate(pipeline.sources_of(built.query.name)):
            place = Path(folder).resolve() / str(number)
            place.mkdir()
            names[str(place)] = source.name
            rows = built.frames[source.name]
            reader = session.readStream if rows.isStreaming else session.read
            stand_ins[source.name] = reader.schema(rows.schema).format("parquet").load(str(place))
            ids |= dict.fromkeys(spark_internals.column_ids(stand_ins[source.name]), source.name)
        made = frames(session, pipeline, built.query.name, Reading(handed_on=stand_ins))
        rows = made.rows[built.query.name].drop(HIDDEN, ARRIVED)
        plan = _texts(rows, hiding(project))

    def source_of(leaf: Json) -> str | None:
        found = _SOURCE.match(str(leaf.get("sourceName") or ""))
        if found and found[1] in names:
            return names[found[1]]
        output = leaf.get("output") or []
        first = output[0][0].get("exprId", {}).get("id") if output and output[0] else None
        return None if first is None else ids.get(first)

    found = trace(plan, source_of)
    return Signature(
        engine.version,
        sources_in(plan.analysed, source_of),
        tuple(found.operators),
        tuple(found.watermarks),
        tuple(found.filters),
        found.output,
        found.types,
        code,
        session.conf.get(TIME_ZONE) or "",
    )


def hiding(project: Project) -> Callable[[str], str]:
    """Puts a hash in the place of each secret that a variable holds: a manifest has to notice another one."""
    secrets = {
        value: name
        for name, value in resolve.environment(project, os.environ).items()
        if len(value) >= _SHORTEST_SECRET and (name in project.secrets or is_secret(name))
    }
    if not secrets:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(value) for value in sorted(secrets, key=len, reverse=True)))
    return lambda text: pattern.sub(lambda found: f"${{{secrets[found[0]]}}} #{digest(found[0])[:8]}", text)


def _texts(rows: DataFrame, hide: Callable[[str], str]) -> PlanTexts:
    clock = _CLOCK.search(spark_internals.analyzed_json(rows)) is not None
    if clock:  # the time of this moment must not be folded into other constants
        rows.sparkSession.conf.set("spark.sql.optimizer.excludedRules", _FOLDING)
    with spark_internals.active(rows.sparkSession):
        analysed, optimised, text, columns = spark_internals.plan_texts(rows)
        plan = json.loads(optimised)
        if clock:
            later = json.loads(spark_internals.plan_texts(rows)[1])
            plan = without_clock(plan, later, str(_today(rows.sparkSession)))
    types = [field.dataType.simpleString() for field in rows.schema.fields]
    listed = [(id_, name, type_) for (id_, name), type_ in zip(columns, types, strict=True)]
    return PlanTexts(json.loads(analysed), with_constants_hidden(plan, hide), _DELAY.findall(text), listed)


def _today(session: SparkSession) -> date:
    try:
        return datetime.now(ZoneInfo(session.conf.get(TIME_ZONE) or "UTC")).date()
    except (ZoneInfoNotFoundError, ValueError):  # an offset, such as `+02:00`
        return datetime.now(UTC).date()


def code_hashes(pipeline: Pipeline, query: Query, root: Path) -> dict[str, str]:
    """The hashes of the user's code: by `module:name`, by the name of a step whose code is in no module, or by `name()`
    of a function that SQL calls."""
    found: dict[str, str | None] = {}
    for node in pipeline.upstream(query.name):
        if not isinstance(node, Step):
            continue
        if isinstance(node.spec, Process):
            given = json.dumps([node.spec.process.with_ if node.spec.process.is_ready_made else "",
                                node.spec.process.options], sort_keys=True, default=str)  # fmt: skip
            found[f"{node.name} (options)"] = digest(given)
        if node.spec.code and (hashed := code_hash(node.spec.code, root)):
            found[node.spec.code] = hashed
        elif node.code is not None:
            with suppress(OSError, TypeError, SyntaxError):
                found[node.name] = text_hash(textwrap.dedent(inspect.getsource(node.code)))
    for name, function in pipeline.functions.items():
        found[f"{name}()"] = code_hash(function.python, root)
    return {name: hashed for name, hashed in found.items() if hashed}
