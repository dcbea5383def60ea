"""Triggers against what a query computes, reads and writes: what Continuous Processing and Real-Time Mode allow."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.durations import to_milliseconds
from penstock.facts import Operator
from penstock.pipeline.model import Query
from penstock.streams import CLOCKS, called, groups_by_session, is_stateful, is_stream_stream
from penstock.triggers import Kind

_CONTINUOUS = "Continuous Processing"
_REAL_TIME = "Real-time Mode"
_SHORTEST_MS = 5_000
_CONTINUOUS_OPERATORS = ("source", "project", "filter")
_STATELESS = (*_CONTINUOUS_OPERATORS, "watermark", "union", "join")
_REAL_TIME_STATE = ("aggregate", "distinct", "deduplicate")
_PYTHON_OPERATORS = ("MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow")
_SINKS = ("console", "kafka")


def _queries(subject: Subject, kind: Kind) -> Iterator[Query]:
    for query in subject.pipeline.queries:
        if query.trigger.kind == kind:
            yield query


def _plans(subject: Subject, kind: Kind) -> Iterator[tuple[Query, Operator]]:
    for query, plan in subject.planned():
        if query.trigger.kind == kind:
            yield query, plan


@rule(
    "CONTINUOUS001",
    needs="plan",
    kind="start",
    guide=_CONTINUOUS,
    wrong="""
    pipeline: counted
    sources: {ticks: {type: rate}}
    steps: {counts: {sql: "SELECT value % 10 AS digit, count(*) AS n FROM ticks GROUP BY value % 10"}}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {trigger: {continuous: 1 second}, mode: complete}}
    """,
    right="""
    pipeline: counted
    sources: {ticks: {type: rate}}
    steps: {counts: {sql: "SELECT value % 10 AS digit, count(*) AS n FROM ticks GROUP BY value % 10"}}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {trigger: 1 second, mode: complete}}
    """,
)
def continuous_operator(subject: Subject) -> Iterator[Finding]:
    """Continuous Processing runs projections and filters alone.

    Each row goes through on its own. What needs several rows, such as a group, a join or a watermark, needs batches.
    """
    for query, plan in _plans(subject, "continuous"):
        for operator in plan.walk():
            if operator.kind not in _CONTINUOUS_OPERATORS:
                yield (
                    f"query `{query.name}` is continuous, and `{operator.node}` has {called(operator)}",
                    "use a time such as `trigger: 1 second`, or `{real_time: 5 minutes}` where Spark can",
                    subject.pipeline.place_of_trigger(query),
                )
                break


@rule(
    "CONTINUOUS002",
    needs="plan",
    kind="start",
    guide=_CONTINUOUS,
    wrong="""
    pipeline: stamped
    sources: {ticks: {type: rate}}
    steps: {stamped: {sql: "SELECT value, current_timestamp() AS at FROM ticks"}}
    sinks: {out: {of: stamped, type: console}}
    queries: {stamped: {trigger: {continuous: 1 second}}}
    """,
    right="""
    pipeline: stamped
    sources: {ticks: {type: rate}}
    steps: {stamped: {sql: "SELECT value, timestamp AS at FROM ticks"}}
    sinks: {out: {of: stamped, type: console}}
    queries: {stamped: {trigger: {continuous: 1 second}}}
    """,
)
def continuous_clock(subject: Subject) -> Iterator[Finding]:
    """Continuous Processing has no `current_timestamp()`.

    Spark sets the clock once for a batch, and here there are none.
    """
    for query, plan in _plans(subject, "continuous"):
        for operator in plan.walk():
            if any(part.name in CLOCKS for part in operator.expressions()):
                yield (
                    f"query `{query.name}` is continuous, and `{operator.node}` asks for the current time",
                    "use a time that the record has, such as Kafka's `timestamp`",
                    places.of_operator(subject, operator, r"\bcurrent_(timestamp|date)\b|\bnow\b"),
                )


@rule(
    "CONTINUOUS003",
    kind="start",
    guide=_CONTINUOUS,
    wrong="""
    pipeline: lines
    sources: {lines: {type: files, path: in, format: text}}
    sinks: {out: {of: lines, type: console}}
    queries: {lines: {trigger: {continuous: 1 second}}}
    """,
    right="""
    pipeline: lines
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console}}
    queries: {ticks: {trigger: {continuous: 1 second}}}
    """,
)
def continuous_source(subject: Subject) -> Iterator[Finding]:
    """Continuous Processing cannot read from this source.

    It reads from Kafka, and for tests from `rate` and `socket`: sources that hand out rows one by one.
    """
    for query in _queries(subject, "continuous"):
        for source in subject.pipeline.sources_of(query.name):
            if source.spec.type not in ("kafka", "rate", "socket"):
                yield (
                    f"query `{query.name}` is continuous and reads from `{source.name}` ({source.spec.type})",
                    "use a time such as `trigger: 1 second`",
                    subject.pipeline.place_of_trigger(query),
                )


@rule(
    "CONTINUOUS004",
    kind="start",
    guide=_CONTINUOUS,
    wrong="""
    pipeline: stored
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: files, path: out, format: json}}
    queries: {ticks: {trigger: {continuous: 1 second}}}
    """,
    right="""
    pipeline: stored
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console}}
    queries: {ticks: {trigger: {continuous: 1 second}}}
    """,
)
def continuous_sink(subject: Subject) -> Iterator[Finding]:
    """Continuous Processing cannot write to this sink.

    It writes to Kafka, to the console and to memory: one sink, row by row. The guide names `foreach` too, but one in
    Python fails when its second epoch begins.
    """
    yield from _other_sinks(subject, "continuous", (*_SINKS, "memory"), by_row=False)


@rule(
    "REALTIME001",
    kind="start",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: {real_time: 5 minutes}}}
    """,
    right="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
)
def real_time_mode(subject: Subject) -> Iterator[Finding]:
    """Real-Time Mode writes in output mode `update` alone.

    Rows leave as they come, before the batch that they belong to has ended.
    """
    for query in _queries(subject, "real_time"):
        if query.settings.mode != "update":
            yield (
                f"query `{query.name}` runs in real time with mode `{query.settings.mode}`",
                "set `mode: update`; for rows that are never changed it means the same as `append`",
                query.origin.at("mode"),
            )


@rule(
    "REALTIME002",
    kind="start",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console}}
    queries: {ticks: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
    right="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: console}}
    queries: {orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
)
def real_time_source(subject: Subject) -> Iterator[Finding]:
    """Real-Time Mode reads streams from Kafka alone.

    A static table may be joined with.
    """
    for query in _queries(subject, "real_time"):
        for source in subject.pipeline.sources_of(query.name):
            if source.spec.type != "kafka" and not source.spec.is_static:
                yield (
                    f"query `{query.name}` runs in real time and reads from `{source.name}` ({source.spec.type})",
                    f"read it from Kafka, or use {_slower(query)}",
                    subject.pipeline.place_of_trigger(query),
                )


@rule(
    "REALTIME003",
    kind="start",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: delta, path: out, write: upsert, keys: [value]}}
    queries: {orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
    right="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
)
def real_time_sink(subject: Subject) -> Iterator[Finding]:
    """Real-Time Mode cannot write to this sink.

    It writes to Kafka, to the console, and through a `python` sink with `foreach`. What is written batch by batch would
    come out when a batch ends, minutes later.
    """
    yield from _other_sinks(subject, "real_time", _SINKS, by_row=True)


@rule(
    "REALTIME004",
    needs="plan",
    kind="start",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    sources:
      orders:
        type: kafka
        servers: localhost:9092
        topics: [orders]
        format: raw
        metadata: [key, timestamp]
        watermark: {column: _timestamp, delay: 1 hour}
    steps: {unique_orders: {deduplicate: {of: orders, keys: [_key], within_watermark: true}}}
    sinks: {out: {of: unique_orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {unique_orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
    right="""
    pipeline: quick
    sources:
      orders:
        type: kafka
        servers: localhost:9092
        topics: [orders]
        format: raw
        metadata: [key, timestamp]
        watermark: {column: _timestamp, delay: 1 hour}
    steps: {unique_orders: {deduplicate: {of: orders, keys: [_key], within_watermark: true}}}
    sinks: {out: {of: unique_orders, type: kafka, servers: localhost:9092, topic: copies}}
    """,
)
def real_time_operator(subject: Subject) -> Iterator[Finding]:
    """Real-Time Mode cannot run this operator on this Spark.

    It runs projections, filters, unions of different sources and joins with static tables; from Spark 4.3 on also
    aggregations and deduplication. A join of two streams, a session, a limit and state in Python need batches.
    """
    with_state = subject.spark_is_at_least(4, 3)
    for query, plan in _plans(subject, "real_time"):
        found = next((one for one in plan.walk() if not _runs_in_real_time(one, with_state)), None)
        if found is not None:
            newer = _runs_in_real_time(found, with_state=True)
            yield (
                f"query `{query.name}` runs in real time, and `{found.node}` has {called(found)}",
                ("use Spark 4.3, or " if newer else "use ") + _slower(query),
                places.of_operator(subject, found),
            )


@rule(
    "REALTIME007",
    needs="plan",
    kind="start",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    steps: {twice: {sql: SELECT value FROM orders UNION ALL SELECT reverse(value) AS value FROM orders}}
    sinks: {out: {of: twice, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {twice: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
    right="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    steps: {twice: {sql: "SELECT explode(array(value, reverse(value))) AS value FROM orders"}}
    sinks: {out: {of: twice, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {twice: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
)
def real_time_union(subject: Subject) -> Iterator[Finding]:
    """A union in Real-Time Mode takes each source once, and no state before it.

    Each source has tasks of its own for the whole of a batch, and two of the same kind cannot be told apart.
    """
    for query, plan in _plans(subject, "real_time"):
        for union in (one for one in plan.walk() if one.kind == "union"):
            sources = [one.node for one in union.walk() if one.kind == "source" and one.streams]
            twice = [name for name in sources if sources.count(name) > 1]
            if twice or is_stateful(union):
                why = f"reads `{twice[0]}` twice" if twice else "puts streams together after a step with state"
                yield (
                    f"query `{query.name}` runs in real time and {why}",
                    f"make both rows with one SELECT, such as `explode(array(…))`; or use {_slower(query)}",
                    places.of_operator(subject, union, r"\bUNION\b"),
                )


@rule(
    "REALTIME005",
    needs="plan",
    kind="start",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    functions: {clean: {python: "texts:clean", returns: STRING, on_error: fail}}
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    steps: {cleaned: {sql: SELECT clean(cast(value AS STRING)) AS value FROM orders}}
    sinks: {out: {of: cleaned, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {cleaned: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
    right="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    steps: {cleaned: {sql: SELECT trim(cast(value AS STRING)) AS value FROM orders}}
    sinks: {out: {of: cleaned, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {cleaned: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
)
def real_time_python(subject: Subject) -> Iterator[Finding]:
    """Real-Time Mode runs no Python.

    Rows go to Python in packets, and a packet is sent on when it is full or the batch ends: minutes later.
    """
    for query, plan in _plans(subject, "real_time"):
        declared = {name.lower() for name in subject.pipeline.functions}
        for operator in plan.walk():
            if any(part.name == "python" or part.name in declared for part in operator.expressions()):
                yield (
                    f"query `{query.name}` runs in real time, and `{operator.node}` calls Python",
                    f"say it in SQL, or use {_slower(query)}",
                    places.of_operator(subject, operator),
                )
                break


@rule(
    "REALTIME006",
    kind="start",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: {real_time: 1 second}, mode: update}}
    """,
    right="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
)
def real_time_batch(subject: Subject) -> Iterator[Finding]:
    """A batch of Real-Time Mode is at least five seconds long.

    Its length says how often progress is written down, not how quick rows are: those leave at once. Between two batches
    is a pause, so long ones are better.
    """
    for query in _queries(subject, "real_time"):
        if to_milliseconds(query.trigger.interval or "0") < _SHORTEST_MS:
            yield (
                f"query `{query.name}` has real-time batches of {query.trigger.interval}",
                "write `{real_time: 5 minutes}`: rows leave within milliseconds all the same",
                subject.pipeline.place_of_trigger(query),
            )


@rule(
    "REALTIME008",
    guide=_REAL_TIME,
    wrong="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw, min_partitions: 500}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
    right="""
    pipeline: quick
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: {real_time: 5 minutes}, mode: update}}
    """,
)
def real_time_slots(subject: Subject) -> Iterator[Finding]:
    """Real-time queries need more cores than there are.

    Each holds a core for every partition of its sources for the whole of a batch. What finds none waits until a batch
    ends, minutes later; rows then stand still.
    """
    queries = list(_queries(subject, "real_time"))
    needed = sum(
        getattr(source.spec, "min_partitions", None) or 1
        for query in queries
        for source in subject.pipeline.sources_of(query.name)
        if not source.spec.is_static
    )
    if needed > subject.slots:
        yield (
            f"the real-time queries of `{subject.pipeline.name}` hold {needed} cores, and there are {subject.slots}",
            f"give them more cores, read fewer partitions, or use {_slower(queries[0])}",
            subject.pipeline.place_of_trigger(queries[0]),
        )


@rule(
    "TRIGGER002",
    "warning",
    wrong="""
    pipeline: nightly
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: console}}
    queries: {orders: {trigger: available_now}}
    """,
    right="""
    pipeline: nightly
    sources: {orders: {type: kafka, servers: kafka:9092, topics: [orders], format: raw, max_offsets_per_trigger: 9999}}
    sinks: {out: {of: orders, type: console}}
    queries: {orders: {trigger: available_now}}
    """,
)
def no_limit(subject: Subject) -> Iterator[Finding]:
    """`available_now` without a limit takes everything in one batch.

    After a long pause that may be more than memory and disk can hold, and a failure begins it all again. With a limit
    it comes in several batches, each committed.
    """
    for query in _queries(subject, "available_now"):
        for source in subject.pipeline.sources_of(query.name):
            key = {"kafka": "max_offsets_per_trigger", "files": "max_files_per_trigger"}.get(source.spec.type)
            limits = [name for name in type(source.spec).model_fields if name.startswith("max_") and "trigger" in name]
            if key and not source.spec.is_static and not any(getattr(source.spec, name) for name in limits):
                yield (
                    f"query `{query.name}` takes all that `{source.name}` has in one batch",
                    f"set `{key}` on the source",
                    source.origin.where,
                )


def _slower(query: Query) -> str:
    """The nearest that works everywhere."""
    return "`latency: low`, without the trigger" if query.settings.trigger else "`latency: low`"


def _other_sinks(subject: Subject, kind: Kind, taken: tuple[str, ...], *, by_row: bool) -> Iterator[Finding]:
    for query in _queries(subject, kind):
        for sink in query.sinks:
            fits = sink.spec.type in taken or (by_row and getattr(sink.spec, "foreach", None) is not None)
            if len(query.sinks) > 1 or sink.spec.batch_sql or not fits:
                how = "continuous" if kind == "continuous" else "real-time"
                yield (
                    f"sink `{sink.name}` ({sink.spec.type}) of the {how} query `{query.name}` is written in batches",
                    f"write to `kafka` and let another query take it from there; or use {_slower(query)}",
                    sink.origin.where,
                )


def _runs_in_real_time(operator: Operator, with_state: bool) -> bool:
    if not operator.is_streaming:
        return True
    if operator.kind == "other":
        return operator.name not in _PYTHON_OPERATORS
    if operator.kind in _REAL_TIME_STATE:
        return with_state and not _is_session(operator)
    return operator.kind in _STATELESS and not is_stream_stream(operator)


def _is_session(operator: Operator) -> bool:
    return operator.kind == "aggregate" and groups_by_session(operator)
