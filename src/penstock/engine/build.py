"""From a pipeline to DataFrames, each query in a session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.durations import to_spark
from penstock.engine import spark_problems
from penstock.engine.session import Engine
from penstock.pipeline.model import Pipeline, Query, Source
from penstock.problems import Problem, UserError
from penstock.sinks.sink import Mode
from penstock.triggers import Trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OBSERVATION = "penstock"
"""The name under which each batch counts the rows that it hands to the sink."""


@dataclass(frozen=True)
class Built:
    """A query that can be started: its session, and the rows of each node it is made of."""

    query: Query
    session: SparkSession
    frames: Mapping[str, DataFrame]

    @property
    def rows(self) -> DataFrame:
        return self.frames[self.query.name]


def build(engine: Engine, pipeline: Pipeline, query: Query, settings: Mapping[str, str]) -> Built:
    """Declares a query's sources and steps to Spark. The pipeline is resolved. Raises UserError at the user's line."""
    needed: dict[str, str] = {}
    for source in pipeline.sources_of(query.name):
        needed |= source.spec.session_settings
    session = engine.session(needed | dict(settings))
    return Built(query, session, frames(session, pipeline, query.name))


def frames(
    session: SparkSession, pipeline: Pipeline, name: str, samples: Mapping[str, DataFrame] | None = None
) -> dict[str, DataFrame]:
    """The rows of a node and of all it is made from, each also a temporary view; `samples` stand in for sources."""
    made: dict[str, DataFrame] = {}
    for node in pipeline.upstream(name):
        try:
            if isinstance(node, Source):
                rows = samples[node.name] if samples else node.spec.load(session)
            else:
                rows = node.apply(session, {name: made[name] for name in node.inputs if name in made})
                _require_rows(rows, node.name)
            if node.spec.watermark is not None:
                rows = rows.withWatermark(node.spec.watermark.column, to_spark(node.spec.watermark.delay))
            _ = rows.schema  # analysed now, so that an error belongs to this node and not to a later one
        except UserError:
            raise
        except Exception as error:
            raise UserError(spark_problems.while_building(error, node)) from error
        rows.createOrReplaceTempView(node.name)
        made[node.name] = rows
    return made


def refusal(engine: Engine, built: Built) -> Problem | None:
    """Spark's own verdict on a query, without starting it."""
    query = built.query
    if not built.rows.isStreaming:
        return Problem("SPARK006", f"`{query.name}` reads no stream, so there is nothing to run",
                       "read one of its sources with `read: stream`", query.origin.where)  # fmt: skip
    error = refusal_of(engine, built.rows, query.settings.mode)
    return spark_problems.unsupported(error, query.origin.at("mode"), query.name) if error else None


def refusal_of(engine: Engine, rows: DataFrame, mode: Mode) -> Exception | None:
    """What Spark says against streaming these rows in an output mode."""
    jvm: Any = engine.spark._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    output_mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), output_mode)
    except Exception as error:  # noqa: BLE001 - PySpark gives each refusal a class of its own
        return error
    return None


def start(built: Built, checkpoint: str, trigger: Trigger) -> StreamingQuery:
    """Starts a query on its sink. Raises UserError."""
    from pyspark.sql.functions import count, lit

    query = built.query
    counted = built.rows.observe(OBSERVATION, count(lit(1)).alias("rows"))
    writer = counted.writeStream.queryName(query.name).outputMode(query.settings.mode)
    writer = trigger.set_on(writer.option("checkpointLocation", checkpoint))
    try:
        return query.sink.spec.start(writer, query.sink.name)
    except Exception as error:
        raise UserError(spark_problems.while_starting(error, query.sink)) from error


def connectors_of(pipelines: tuple[Pipeline, ...]) -> tuple[str, ...]:
    """The connectors that the sources and sinks of pipelines need."""
    found = {name for pipeline in pipelines for source in pipeline.sources for name in source.spec.connectors}
    found |= {name for pipeline in pipelines for sink in pipeline.sinks for name in sink.spec.connectors}
    return tuple(sorted(found))


def _require_rows(rows: object, name: str) -> None:
    if not hasattr(rows, "withWatermark"):
        raise TypeError(f"it returned {type(rows).__name__}, not a DataFrame (step `{name}`)")
