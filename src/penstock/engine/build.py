"""From a pipeline to DataFrames, each query in a session of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from penstock import spark_internals
from penstock.dead_letters import verdicts
from penstock.dead_letters.as_step import DeadLetters
from penstock.dead_letters.bad_records import ARRIVED, HIDDEN
from penstock.dead_letters.leaving import routed_letters, routed_nodes
from penstock.engine import record_times, spark_problems
from penstock.engine.batches import BatchWriter
from penstock.engine.plan_facts import plan_of_rows
from penstock.engine.session import Engine
from penstock.engine.settled import settled, spare_rules
from penstock.facts.operators import Operator
from penstock.facts.streams import is_stateful
from penstock.notation.durations import to_spark
from penstock.pipeline.model import Pipeline, Query, Source, Step
from penstock.problems import Fault, Problem, UserError
from penstock.query.async_progress import writer_options
from penstock.query.state_store import PROVIDER, PROVIDERS
from penstock.query.triggers import Trigger
from penstock.sinks.sink import Mode, SinkSpec
from penstock.transforms import functions
from penstock.transforms.splice import CARRIED, FUNCTION_FIX, Misplaced, with_hidden
from penstock.transforms.sql import Sql
from penstock.user_code import load_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Instead = Callable[["SparkSession", Source], "DataFrame | None"]
"""Rows that stand in for a source that cannot be read yet; None where it can."""
OBSERVATION = "penstock"
"""The name under which each batch counts the rows that it hands to the sinks."""


@dataclass(frozen=True)
class Built:
    """A query that can be started: its session, and the rows of each node it is made of."""

    query: Query
    session: SparkSession
    frames: Mapping[str, DataFrame]
    routed: tuple[DataFrame, ...] = ()
    """Dead letters that leave with the rows, as the sink takes them."""

    @property
    def rows(self) -> DataFrame:
        return self.frames[self.query.name].drop(HIDDEN, ARRIVED)

    @cached_property
    def plan(self) -> Operator:
        """The operators that make the rows."""
        return plan_of_rows(self.rows, self.query.name, tuple(self.frames))

    @property
    def is_stateful(self) -> bool:
        """Does Spark keep something from batch to batch to make the rows?"""
        return is_stateful(self.plan)


def build(
    engine: Engine,
    pipeline: Pipeline,
    query: Query,
    settings: Mapping[str, str],
    *,
    again: SparkSession | None = None,
    instead: Instead | None = None,
) -> Built:
    """Declares a query's sources and steps to Spark. The pipeline is resolved. Raises UserError at the user's line.

    `again`: the session of the query's earlier start in this run.
    """
    needed: dict[str, str] = {}
    for source in pipeline.sources_of(query.name):
        needed |= source.spec.session_settings
    session = engine.session(needed | dict(settings), again)
    _require_store(engine, query, settings.get(PROVIDER, ""))
    routed = routed_nodes(pipeline, query)
    reading = Reading(whole=bool(routed), timed=query.trigger.kind == "real_time", instead=instead)
    made = frames(session, pipeline, query.name, reading)
    place = routed_letters(query)
    plain = Built(query, session, made.rows)
    if place is None:
        return plain
    if plain.is_stateful or not is_native(pipeline, plain):
        why = "keeps state" if plain.is_stateful else "is written batch by batch"
        raise UserError(
            Problem("RECORD006", f"query `{query.name}` {why}, so dead letters cannot leave with its rows",
                    "remove `dead_letter_topic`: they leave through a query of their own then",
                    query.sink.origin.at("dead_letter_topic"))
        )  # fmt: skip
    letters = [verdicts.dead_letters(made.judged[name], name) for name in routed]
    return replace(plain, routed=tuple(place.encoded(one) for one in letters))


@dataclass(frozen=True)
class Reading:
    """How the sources of a query are read."""

    samples: Mapping[str, DataFrame] | None = None
    """Rows that stand in for the sources."""
    handed_on: Mapping[str, DataFrame] | None = None
    """Rows that stand in for what the sources hand on to steps, decoded and judged."""
    whole: bool = False
    """Is the origin of a record handed on from step to step?"""
    timed: bool = False
    """Does each batch report how late the records of its sources came?"""
    instead: Instead | None = None
    """Gives rows in place of a source whose table is not made yet."""


AS_DECLARED = Reading()


@dataclass(frozen=True)
class Frames:
    """The rows of a node and of all that it is made from, by name."""

    rows: Mapping[str, DataFrame]
    """Those that go on."""
    judged: Mapping[str, DataFrame]
    """All of them, with their verdicts."""


def frames(session: SparkSession, pipeline: Pipeline, name: str, reading: Reading = AS_DECLARED) -> Frames:
    """Declares a node, and all that it is made from, to Spark; each is also a temporary view. Raises UserError."""
    samples = reading.samples
    judged: dict[str, DataFrame] = {}
    made: dict[str, DataFrame] = {}
    aside = pipeline.nodes[name].spec
    asked = aside.dead_letters if isinstance(aside, DeadLetters) else None
    for function in pipeline.functions:
        _register(session, pipeline, function)
    nodes = pipeline.upstream(name)
    limited = [node for node in nodes if node.spec.watermark and node.spec.watermark.max_future]
    carried = {HIDDEN} if reading.whole or asked else set()
    carried |= {ARRIVED} if any(isinstance(node, Step) for node in limited) else set()
    for node in nodes:
        try:
            if reading.handed_on is not None and isinstance(node, Source):
                made[node.name] = _with_watermark(reading.handed_on[node.name], node)
                made[node.name].createOrReplaceTempView(node.name)
                continue
            if isinstance(node.spec, DeadLetters):
                made[node.name] = verdicts.dead_letters(made[node.spec.dead_letters], node.spec.dead_letters)
                continue
            if isinstance(node, Source):
                rows = samples[node.name] if samples else _loaded(session, node, HIDDEN in carried, reading)
                rows = verdicts.with_arrival(rows, node) if limited and not samples else rows
            else:
                ready = {one: made[one] for one in node.inputs if one in made}
                rows = _applied(session, node, pipeline, ready, pipeline.mode_of(name))
            rows = verdicts.judged(rows, node, pipeline.guarded)
            if isinstance(node, Step) and verdicts.VERDICT in rows.columns and is_stateful(plan_of_rows(rows, "", ())):
                keys = ("expect",) if node.spec.expect else ("watermark", "max_future")
                raise Fault("EXPECT001", f"step `{node.name}` keeps state, so its rows cannot be put aside or dropped",
                            f"set `{keys[-1]}` on a source or a step before it", keys)  # fmt: skip
            judged[node.name] = rows
            if node.name != asked:
                rows = _going_on(verdicts.kept(rows, node, pipeline.guarded, carried), node)
            _ = rows.schema  # analysed now, so that an error belongs to this node and not to a later one
        except UserError:
            raise
        except Fault as fault:
            raise UserError(fault.at(node.origin.at(*fault.keys))) from fault
        except Exception as error:
            raise UserError(spark_problems.while_building(error, node)) from error
        rows.createOrReplaceTempView(node.name)
        made[node.name] = rows
    return Frames(made, judged)


def _loaded(session: SparkSession, source: Source, whole: bool, reading: Reading) -> DataFrame:
    if reading.instead is not None and (rows := reading.instead(session, source)) is not None:
        return rows
    if reading.timed:
        return source.spec.load_timed(session, partial(record_times.observed, source=source.name), whole=whole)
    return source.spec.load_whole(session) if whole else source.spec.load(session)


def _going_on(rows: DataFrame, node: Source | Step) -> DataFrame:
    """What later steps see of a node."""
    if isinstance(node, Source) and node.spec.declared_capabilities.stable_plan and rows.isStreaming:
        rows = settled(rows)
    return _with_watermark(rows, node)


def _with_watermark(rows: DataFrame, node: Source | Step) -> DataFrame:
    watermark = node.spec.watermark
    return rows if watermark is None else rows.withWatermark(watermark.column, to_spark(watermark.delay))


def _applied(
    session: SparkSession, node: Step, pipeline: Pipeline, inputs: Mapping[str, DataFrame], mode: Mode
) -> DataFrame:
    """A step's rows. A SELECT gets the hidden columns too; a function of the user's sees none."""
    if not isinstance(node.spec, Sql):
        rows = node.apply(session, {name: rows.drop(HIDDEN, ARRIVED) for name, rows in inputs.items()}, mode)
        _require_rows(rows, node.name)
        return rows
    hidden = (HIDDEN, ARRIVED)
    carried = [column for column in hidden if sum(column in rows.columns for rows in inputs.values()) == 1]
    try:
        rows = _selected(session, node.spec.sql, pipeline, inputs, carried)
    except Misplaced as misplaced:
        where = node.origin.at("sql").inside(misplaced.line, misplaced.column)
        raise UserError(Problem("FUNCTION001", f"step `{node.name}`: {misplaced}", FUNCTION_FIX, where)) from None
    rows = rows.drop(*hidden)  # `SELECT *` gives them too
    return rows.withColumnsRenamed({f"{column}{CARRIED}": column for column in carried})


def _selected(
    session: SparkSession, sql: str, pipeline: Pipeline, inputs: Mapping[str, DataFrame], carried: list[str]
) -> DataFrame:
    """The rows of a SELECT, with what it can carry. Raises Misplaced."""
    from pyspark.errors import AnalysisException

    plain, carrying = with_hidden(sql, pipeline.guarded), with_hidden(sql, pipeline.guarded, carried)
    if carrying != plain:
        # Out of a subquery, or where a table stands twice, it cannot be had.
        with contextlib.suppress(AnalysisException):
            return session.sql(carrying)
    hiding = {name: rows for name, rows in inputs.items() if {HIDDEN, ARRIVED} & set(rows.columns)}
    for name, rows in hiding.items():  # DISTINCT, or a UNION by position, must not see what is hidden
        rows.drop(HIDDEN, ARRIVED).createOrReplaceTempView(name)
    try:
        return session.sql(plain)
    finally:
        for name, rows in hiding.items():
            rows.createOrReplaceTempView(name)


def _register(session: SparkSession, pipeline: Pipeline, name: str) -> None:
    function = pipeline.functions[name]
    where = pipeline.origin.at("functions", name)
    try:
        functions.register(session, name, function, load_code(function.python))
    except Exception as error:
        message = f"the function `{name}` cannot be made: {type(error).__name__}: {str(error).splitlines()[0]}"
        fix = "name a function as `module:function`, and a type of Spark's SQL in `returns`"
        raise UserError(Problem("FUNCTION002", message, fix, where)) from error


def _require_store(engine: Engine, query: Query, provider: str) -> None:
    """Raises UserError if Spark does not find the class of a state store, as it would only say in the first batch."""
    if not provider or provider in PROVIDERS.values():
        return
    if not spark_internals.has_class(engine.spark, provider):
        where = query.origin.at("state", "store")
        fix = "name a class with its package, and its jar in `penstock.yaml`: `spark: {spark.jars: …}`"
        raise UserError(Problem("STORE003", f"Spark does not find the state store `{provider}`", fix, where))


def refusal(built: Built) -> Problem | None:
    """Spark's own verdict on a query, without starting it."""
    query = built.query
    if not built.rows.isStreaming:
        return Problem("SPARK006", f"`{query.name}` reads no stream, so there is nothing to run",
                       "read one of its sources with `read: stream`", query.origin.where)  # fmt: skip
    error = refusal_of(built.rows, query.settings.mode)
    return spark_problems.unsupported(error, query.origin.at("mode"), query.name) if error else None


def refusal_of(rows: DataFrame, mode: Mode) -> Exception | None:
    """What Spark says against streaming these rows in an output mode."""
    try:
        spark_internals.check_for_streaming(rows, mode)
    except Exception as error:  # noqa: BLE001 - PySpark gives each refusal a class of its own
        return error
    return None


@dataclass(frozen=True)
class Started:
    """A query that runs, and what writes its batches where Spark's own sink does not."""

    streaming: StreamingQuery
    trigger: Trigger
    writer: BatchWriter | None = None
    interval: str | None = None
    """How often progress is written down beside the work; None where each batch waits for it."""


def start(
    engine: Engine,
    pipeline: Pipeline,
    built: Built,
    checkpoint: str,
    query_id: str,
    trigger: Trigger,
    interval: str | None = None,
) -> Started:
    """Starts a query on its sinks. With an interval, progress is written down beside the work. Raises UserError."""
    from pyspark.sql.functions import count, lit

    query, sink = built.query, built.query.sink
    if trigger.ends:
        let_end(built.session, built.plan)
    native = is_native(pipeline, built)
    rows = built.rows
    if native:
        rows = sink.spec.encoded(rows)
        for letters in built.routed:
            rows = rows.unionByName(letters, allowMissingColumns=True)
    # Continuous Processing has no batches to count in.
    if trigger.kind != "continuous" and not (native and sink.spec.declared_capabilities.counts_rows):
        rows = rows.observe(OBSERVATION, count(lit(1)).alias("rows"))
    if not built.is_stateful and all(
        source.spec.declared_capabilities.stable_plan for source in pipeline.sources_of(query.name)
    ):
        rows = settled(rows)
    if native and not sink.spec.declared_capabilities.runs_queries:
        spare_rules(rows)
    writer = rows.writeStream.queryName(query.name).outputMode(query.settings.mode)
    writer = trigger.set_on(writer.option("checkpointLocation", checkpoint))
    if interval is not None:
        writer = writer.options(**writer_options(interval))
    try:
        with spark_internals.active(built.session):
            if native:
                return Started(sink.spec.start(writer, sink.name), trigger, interval=interval)
            first = built.is_stateful or pipeline.may_refuse_what_is_written(query)
            batches = BatchWriter(engine, pipeline, query, checkpoint, query_id, materialise=first)
            return Started(writer.foreachBatch(batches).start(), trigger, batches)
    except Exception as error:
        raise UserError(spark_problems.while_starting(error, sink)) from error


def let_end(session: SparkSession, plan: Operator) -> None:
    """Lets a query end when all rows are done. For timers on the clock Spark would run empty batches for ever."""
    if any(one.time == "processing_time" for one in plan.walk()):
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")


def judge_sinks(built: Built) -> Iterator[Problem]:
    """Lets the sinks look at the columns of the rows that they will get. Changes nothing."""
    return _asked(built, lambda spec: spec.judge)


def prepare(built: Built) -> Iterator[Problem]:
    """Lets the sinks make what must be there before the query starts, such as empty tables."""
    return _asked(built, lambda spec: spec.prepare)


def _asked(built: Built, how: Callable[[SinkSpec], Callable[[DataFrame], None]]) -> Iterator[Problem]:
    for sink in built.query.sinks:
        rows = built.rows
        try:
            if sink.spec.batch_sql is None:
                how(sink.spec)(rows)
        except Fault as fault:
            yield fault.at(sink.origin.at(*fault.keys))
        except Exception as error:  # noqa: BLE001 - PySpark gives each refusal a class of its own
            yield spark_problems.while_starting(error, sink)


def leaves_state_behind(pipeline: Pipeline, built: Built) -> bool:
    """Could a batch be done for the sink and not for the state, after a crash between the two commits?"""
    return (
        built.is_stateful and built.query.sink.spec.declared_capabilities.skips_batches and is_native(pipeline, built)
    )


def is_native(pipeline: Pipeline, built: Built) -> bool:
    """Does Spark's own sink write, and not Penstock batch by batch?"""
    # A table's own sink passes over a batch that it has, and then the batch's state is never computed.
    return pipeline.is_native(built.query) and not (
        built.query.sink.spec.declared_capabilities.has_ledger and built.is_stateful
    )


def connectors_of(pipelines: tuple[Pipeline, ...]) -> tuple[str, ...]:
    """The connectors that the sources and sinks of pipelines need."""
    found = {name for pipeline in pipelines for source in pipeline.sources for name in source.spec.connectors}
    found |= {name for pipeline in pipelines for sink in pipeline.sinks for name in sink.spec.connectors}
    return tuple(sorted(found))


def _require_rows(rows: object, name: str) -> None:
    if not hasattr(rows, "withWatermark"):
        raise TypeError(f"it returned {type(rows).__name__}, not a DataFrame (step `{name}`)")
