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

from penstock.engine import build, resolve, spark_problems
from penstock.engine.latency import profile
from penstock.engine.plan_facts import plan_of_rows
from penstock.engine.session import Engine
from penstock.notation.sql_text import quoted
from penstock.pipeline.load import load, use_modules_of
from penstock.pipeline.model import Pipeline, Source
from penstock.prepare.judging import judge_all
from penstock.prepare.needs import StartEngine, needs_of
from penstock.problems import Problem, UserError, did_you_mean, errors_in
from penstock.sinks.sink import Mode
from penstock.sources.source import StaticOrStream
from penstock.transforms.pandas_state import PandasState

if TYPE_CHECKING:
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


def show(
    start: Path, step: str, pipeline_name: str | None, limit: int, environment: str | None, start_engine: StartEngine
) -> ShowResult:
    """Raises UserError, also when several pipelines have a step of that name."""
    loaded = load(start, (pipeline_name,) if pipeline_name else (), environment)
    owners = [pipeline for pipeline in loaded.pipelines if step in pipeline.nodes]
    if len(owners) != 1:
        raise UserError(loaded.problems or _not_one(step, loaded.pipelines, owners))
    judged = judge_all(replace(loaded, pipelines=tuple(owners)))
    if errors_in(judged.problems):
        raise UserError(judged.problems)
    with resolve.masking(judged.project, os.environ), ExitStack() as cleanup:
        connectors, settings = needs_of(judged)
        engine = start_engine(judged.project, connectors, settings)
        cleanup.callback(engine.close)
        use_modules_of(judged.project.root)
        engine.use_modules_of(judged.project.root)
        return _show(engine, judged.resolved[0], step, limit, settings)


def _show(engine: Engine, pipeline: Pipeline, step: str, limit: int, of_project: dict[str, str]) -> ShowResult:
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
    with tempfile.TemporaryDirectory(prefix="penstock-show-") as folder:
        streams = _as_streams(session, pipeline, samples, Path(folder))
        rows = build.frames(session, pipeline, step, build.Reading(streams)).rows[step]
        with _told(pipeline, step):
            rows = _streamed(session, rows, step)
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
    session: SparkSession, pipeline: Pipeline, samples: Mapping[str, DataFrame], folder: Path
) -> dict[str, DataFrame]:
    """The samples as streams, by way of files; static sources stay as they are."""
    streams = dict(samples)
    for source in pipeline.sources:
        if source.name in samples and not source.spec.is_static:
            sample, path = samples[source.name], str(folder / source.name)
            sample.write.parquet(path)
            streams[source.name] = session.readStream.schema(sample.schema).parquet(path)
    return streams


def _streamed(session: SparkSession, rows: DataFrame, step: str) -> DataFrame:
    """What a stream gives for the sample, in the mode that shows most of it."""
    mode = next((mode for mode in _MODES if build.refusal_of(rows, mode) is None), "append")
    name = f"show_{step}"
    build.let_end(session, plan_of_rows(rows, step, ()))
    query = rows.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True).start()
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
        return Problem("PROJECT007", f"several pipelines have a step `{step}`: {named}", "name one with `--pipeline`")
    known = [name for pipeline in pipelines for name in pipeline.nodes]
    return Problem(
        "PROJECT007",
        f"there is no step or source `{step}`{did_you_mean(step, known)}",
        f"name one of: {', '.join(known)}",
    )
