"""Shows the rows of a step on sample input: everything is read as a table, so nothing is started or written."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.engine import build, resolve, spark_problems
from penstock.engine.latency import profile
from penstock.engine.plan_facts import plan_of_rows
from penstock.engine.session import Engine
from penstock.graph.project_graph import NodeName
from penstock.graph.selectors import Selector, parsed
from penstock.notation.sql_text import quoted
from penstock.pipeline.load import Loaded, load, use_modules_of
from penstock.pipeline.model import Pipeline, Source
from penstock.prepare.judging import judge_all
from penstock.prepare.needs import StartEngine, needs_of
from penstock.prepare.sharing import sharing_problems
from penstock.problems import Fault, Problem, UserError, did_you_mean, errors_in
from penstock.sinks.sink import Mode
from penstock.sources.source import StaticOrStream
from penstock.storage.storage import join
from penstock.transforms.pandas_state import PandasState

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame, SparkSession

SAMPLE_ROWS = 1_000
_SAMPLE_SECONDS = 20.0
_MODES: tuple[Mode, ...] = ("complete", "update", "append")


@dataclass(frozen=True)
class ShowResult:
    """Columns with their types, and the first rows."""

    step: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    sampled: bool
    """Was the input cut to a sample?"""

    def to_json(self) -> dict[str, Any]:
        names = [name for name, _ in self.columns]
        return {
            "step": self.step,
            "schema": [{"name": name, "type": kind} for name, kind in self.columns],
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows],
            "sampled": self.sampled,
        }

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a table. NULL stays apart from zero and NaN, and whole numbers stay whole."""
        import pandas as pd

        columns = [
            _pandas_column(name, kind, [row[index] for row in self.rows])
            for index, (name, kind) in enumerate(self.columns)
        ]
        return pd.concat(columns, axis=1) if columns else pd.DataFrame()


_WHOLE = {"tinyint": "Int8", "smallint": "Int16", "int": "Int32", "bigint": "Int64", "boolean": "boolean"}


def _pandas_column(name: str, kind: str, values: list[Any]) -> pd.Series[Any]:
    import pandas as pd

    chosen = _WHOLE.get(kind, "object")
    if kind in ("float", "double") and None not in values:
        chosen = "float64"
    if kind.startswith("timestamp"):
        try:
            return pd.Series(values, name=name, dtype="datetime64[us]")
        except ValueError:
            pass  # a year that pandas cannot count to stays a text
    return pd.Series(values, name=name, dtype=chosen)


def show(
    start: Path, step: str, pipeline_name: str | None, limit: int, environment: str | None, start_engine: StartEngine
) -> ShowResult:
    """One source or step. Raises UserError, also when several pipelines have a step of that name."""
    return show_all(start, (step,), pipeline_name, limit, environment, start_engine)[0]


def show_all(
    start: Path,
    selection: tuple[str, ...],
    pipeline_name: str | None,
    limit: int,
    environment: str | None,
    start_engine: StartEngine,
) -> tuple[ShowResult, ...]:
    """Each source and step that the selectors mean, inputs before what is made of them. Raises UserError."""
    return _show_nodes(*_asked(start, selection, pipeline_name, environment), limit, start_engine)


def show_loaded(loaded: Loaded, step: str, limit: int, start_engine: StartEngine) -> ShowResult:
    """One source or step of pipelines that are there already."""
    return _show_nodes(loaded, (_node(step, loaded),), limit, start_engine)[0]


def _show_nodes(
    loaded: Loaded, nodes: tuple[NodeName, ...], limit: int, start_engine: StartEngine
) -> tuple[ShowResult, ...]:
    owners = tuple(one for one in loaded.pipelines if any(one.name == owner for owner, _ in nodes))
    others = (*loaded.others, *(one for one in loaded.pipelines if one not in owners))
    judged = judge_all(replace(loaded, pipelines=owners, others=others))
    if errors_in(judged.problems):
        raise UserError(judged.problems)
    with resolve.masking(judged.project, os.environ), ExitStack() as cleanup:
        connectors, settings = needs_of(judged)
        engine = start_engine(judged.project, connectors, settings)
        cleanup.callback(engine.close)
        use_modules_of(judged.project.root)
        engine.use_modules_of(judged.project.root)
        if problems := sharing_problems(engine, judged):
            raise UserError(problems)
        resolved = {pipeline.name: pipeline for pipeline in judged.resolved}
        several = len(owners) > 1
        shown = []
        for owner, name in nodes:
            with _throw_away_folder(engine, resolve.storage_root(judged.project, os.environ)) as folder:
                shown.append((owner, name, _show(engine, resolved[owner], name, limit, settings, folder)))
        return tuple(replace(one, step=f"{owner}.{name}") if several else one for owner, name, one in shown)


def _asked(
    start: Path, selection: tuple[str, ...], pipeline_name: str | None, environment: str | None
) -> tuple[Loaded, tuple[NodeName, ...]]:
    """The nodes that are meant. A plain name is a node's first: a pipeline may be called like its last step."""
    loaded = load(start, (pipeline_name,) if pipeline_name else (), environment, to_run=False)
    plain = [parsed(item) for item in selection]
    if any(one.looks_around or "." in one.base for one in plain) and not pipeline_name:
        found = load(start, tuple(_as_node(one, loaded) for one in plain), environment, to_run=False)
        return found, found.nodes
    return loaded, tuple(_node(one.base, loaded) for one in plain)


def _node(name: str, loaded: Loaded) -> NodeName:
    owners = [pipeline for pipeline in loaded.pipelines if name in pipeline.nodes]
    if len(owners) != 1:
        raise UserError(loaded.problems or _not_one(name, loaded.pipelines, owners))
    return owners[0].name, name


def _as_node(selector: Selector, loaded: Loaded) -> str:
    """`+gold` → `+gold.gold`, where one pipeline alone has such a node."""
    owners = [pipeline.name for pipeline in loaded.pipelines if selector.base in pipeline.nodes]
    if len(owners) != 1:
        return selector.text
    return f"{'+' * selector.above}{owners[0]}.{selector.base}{'+' * selector.below}"


@contextmanager
def _throw_away_folder(engine: Engine, storage_root: str) -> Iterator[str]:
    """For the sample and for state: every task must reach it, so on a cluster it is in the storage."""
    if engine.is_local:
        with tempfile.TemporaryDirectory(prefix="penstock-show-") as folder:
            yield folder
        return
    folder = join(storage_root, "ephemeral", f"show-{uuid4()}")
    try:
        yield folder
    finally:
        engine.storage(folder).remove(folder)


def _show(
    engine: Engine, pipeline: Pipeline, step: str, limit: int, of_project: dict[str, str], folder: str
) -> ShowResult:
    from pyspark.errors import AnalysisException

    query = next(
        (q for q in pipeline.queries if pipeline.nodes[step] in pipeline.upstream(q.name)), pipeline.queries[0]
    )
    needed: dict[str, str] = {}
    for source in pipeline.sources_of(step):
        needed |= source.spec.session_settings
    chosen = profile(query, engine.cores, of_project, quick_files=engine.quick_files)
    session = engine.session(needed | chosen.settings)
    samples = {source.name: _sampled(session, source) for source in pipeline.sources_of(step)}
    try:
        return _taken(build.frames(session, pipeline, step, build.Reading(samples)).rows[step], pipeline, step, limit)
    except UserError as error:
        streams_only = any(isinstance(node.spec, PandasState) for node in pipeline.upstream(step))
        if not isinstance(error.__cause__, AnalysisException) and not streams_only:
            raise  # the rows themselves are wrong
    # Some operations work on streams only. Then the sample is streamed.
    streams = _as_streams(session, pipeline, samples, folder)
    rows = build.frames(session, pipeline, step, build.Reading(streams)).rows[step]
    with _told(pipeline, step):
        rows = _streamed(session, rows, step, folder)
    return _taken(rows, pipeline, step, limit)


@contextmanager
def _told(pipeline: Pipeline, step: str) -> Iterator[None]:
    """What fails on the rows themselves is a Problem of the step."""
    try:
        yield
    except Exception as error:
        raise UserError(spark_problems.while_building(error, pipeline.nodes[step], pipeline.nodes)) from error


def _taken(rows: DataFrame, pipeline: Pipeline, step: str, limit: int) -> ShowResult:
    with _told(pipeline, step):
        taken = rows.limit(limit).select(*_readable(rows)).collect()
    sampled = any(not source.spec.is_static for source in pipeline.sources_of(step))
    return ShowResult(step, tuple(rows.dtypes), tuple(tuple(row) for row in taken), sampled)


def _as_streams(
    session: SparkSession, pipeline: Pipeline, samples: Mapping[str, DataFrame], folder: str
) -> dict[str, DataFrame]:
    """The samples as streams, by way of files; static sources stay as they are."""
    streams = dict(samples)
    for source in pipeline.sources:
        if source.name in samples and not source.spec.is_static:
            sample, path = samples[source.name], join(folder, "samples", source.name)
            sample.write.parquet(path)
            streams[source.name] = session.readStream.schema(sample.schema).parquet(path)
    return streams


def _streamed(session: SparkSession, rows: DataFrame, step: str, folder: str) -> DataFrame:
    """What a stream gives for the sample, in the mode that shows most of it."""
    mode = next((mode for mode in _MODES if build.refusal_of(rows, mode) is None), "append")
    name = f"show_{step}"
    build.let_end(session, plan_of_rows(rows, step, ()))
    writer = rows.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True)
    query = writer.option("checkpointLocation", join(folder, "checkpoint")).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return session.table(name)


def _readable(rows: DataFrame) -> list[Column]:
    """Timestamps as text: Python would show them in the machine's own time zone, not in the session's."""
    from pyspark.sql.functions import col

    columns = [(quoted(name), name, kind) for name, kind in rows.dtypes]
    return [
        (col(q).cast("string").alias(name) if kind.startswith("timestamp") else col(q)) for q, name, kind in columns
    ]


def _sampled(session: SparkSession, source: Source) -> DataFrame:
    """The source as a table of its first rows."""
    try:
        if isinstance(source.spec, StaticOrStream):
            static = source.spec.model_copy(update={"read": "static"})
            rows = static.load_whole(session)
            return rows if source.spec.is_static else rows.limit(SAMPLE_ROWS)
        return _from_stream(session, source)
    except Fault as fault:
        raise UserError(fault.at(source.origin.at(*fault.keys))) from None
    except Exception as error:
        raise UserError(spark_problems.while_building(error, source)) from error


def _from_stream(session: SparkSession, source: Source) -> DataFrame:
    """The first rows of a source that is only ever a stream, or those that came in time."""
    name = f"stream_of_{source.name}"
    query = source.spec.load_whole(session).writeStream.format("memory").queryName(name).start()
    try:
        deadline = time.monotonic() + _SAMPLE_SECONDS
        while time.monotonic() < deadline and session.table(name).isEmpty():
            time.sleep(0.2)
    finally:
        query.stop()
    return session.table(name).limit(SAMPLE_ROWS)


def _not_one(step: str, pipelines: tuple[Pipeline, ...], owners: list[Pipeline]) -> Problem:
    if owners:
        named = ", ".join(pipeline.name for pipeline in owners)
        return Problem(
            "PROJECT007",
            f"several pipelines have a step `{step}`: {named}",
            f"name one: {', '.join(f'{pipeline.name}.{step}' for pipeline in owners)}",
        )
    known = [name for pipeline in pipelines for name in pipeline.nodes]
    return Problem(
        "PROJECT007",
        f"there is no step or source `{step}`{did_you_mean(step, known)}",
        f"name one of: {', '.join(known)}",
    )
