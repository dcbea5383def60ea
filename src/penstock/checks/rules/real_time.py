"""Real-Time Mode against what a query computes, reads and writes, and the cores that there are."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places, slots, triggered
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.operators import Operator
from penstock.facts.streams import called, groups_by_session, is_stateful, is_stream_stream
from penstock.notation.durations import to_milliseconds
from penstock.sources.kafka import Kafka
from penstock.sources.source import SourceSpec

_GUIDE = "Real-time Mode"
_SHORTEST_MS = 5_000
_STATELESS = ("source", "project", "filter", "watermark", "union", "join")
_WITH_STATE = ("aggregate", "distinct", "deduplicate")
_LIMITS = ("max_offsets_per_trigger", "min_offsets_per_trigger", "max_trigger_delay", "min_partitions")
"""What Spark refuses of a Kafka source, in the first batch only."""
_PYTHON_OPERATORS = ("MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow")


@rule(
    "REALTIME001",
    kind="start",
    guide=_GUIDE,
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
    for query in triggered.queries(subject, "real_time"):
        if query.settings.mode != "update":
            yield (
                f"query `{query.name}` runs in real time with mode `{query.settings.mode}`",
                "set `mode: update`; for rows that are never changed it means the same as `append`",
                query.origin.at("mode"),
            )


@rule(
    "REALTIME002",
    kind="start",
    guide=_GUIDE,
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
    for query in triggered.queries(subject, "real_time"):
        for source in subject.pipeline.sources_of(query.name):
            if source.spec.type != "kafka" and not source.spec.is_static:
                yield (
                    f"query `{query.name}` runs in real time and reads from `{source.name}` ({source.spec.type})",
                    f"read it from Kafka, or use {triggered.slower(query)}",
                    subject.pipeline.place_of_trigger(query),
                )


@rule(
    "REALTIME003",
    kind="start",
    guide=_GUIDE,
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
    yield from triggered.sinks_in_batches(subject, "real_time", ("console", "kafka"), by_row=True)


@rule(
    "REALTIME004",
    needs="plan",
    kind="start",
    guide=_GUIDE,
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
    for query, plan in triggered.plans(subject, "real_time"):
        found = next((one for one in plan.walk() if not _runs_in_real_time(one, with_state)), None)
        if found is not None:
            newer = _runs_in_real_time(found, with_state=True)
            yield (
                f"query `{query.name}` runs in real time, and `{found.node}` has {called(found)}",
                ("use Spark 4.3, or " if newer else "use ") + triggered.slower(query),
                places.of_operator(subject, found),
            )


@rule(
    "REALTIME007",
    needs="plan",
    kind="start",
    guide=_GUIDE,
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
    for query, plan in triggered.plans(subject, "real_time"):
        for union in (one for one in plan.walk() if one.kind == "union"):
            sources = [one.node for one in union.walk() if one.kind == "source" and one.streams]
            twice = [name for name in sources if sources.count(name) > 1]
            if twice or is_stateful(union):
                why = f"reads `{twice[0]}` twice" if twice else "puts streams together after a step with state"
                yield (
                    f"query `{query.name}` runs in real time and {why}",
                    f"make both rows with one SELECT, such as `explode(array(…))`; or use {triggered.slower(query)}",
                    places.of_operator(subject, union, r"\bUNION\b"),
                )


@rule(
    "REALTIME005",
    needs="plan",
    kind="start",
    guide=_GUIDE,
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
    for query, plan in triggered.plans(subject, "real_time"):
        declared = {name.lower() for name in subject.pipeline.functions}
        for operator in plan.walk():
            if any(part.name == "python" or part.name in declared for part in operator.expressions()):
                yield (
                    f"query `{query.name}` runs in real time, and `{operator.node}` calls Python",
                    f"say it in SQL, or use {triggered.slower(query)}",
                    places.of_operator(subject, operator),
                )
                break


@rule(
    "REALTIME006",
    kind="start",
    guide=_GUIDE,
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
    for query in triggered.queries(subject, "real_time"):
        if to_milliseconds(query.trigger.interval or "0") < _SHORTEST_MS:
            yield (
                f"query `{query.name}` has real-time batches of {query.trigger.interval}",
                "write `{real_time: 5 minutes}`: rows leave within milliseconds all the same",
                subject.pipeline.place_of_trigger(query),
            )


@rule(
    "REALTIME008",
    guide=_GUIDE,
    wrong="""
    pipeline: quick
    sources:
      orders:
        type: kafka
        servers: localhost:9092
        format: raw
        assign: {orders: [
          0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
          28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,
          53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64
        ]}
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
    known = [slots.held(subject.pipeline, query, _partitions_written) for query in subject.pipeline.queries]
    yield from slots.too_few(known, subject.slots)


def _partitions_written(source: SourceSpec) -> int | None:
    """What the text alone tells."""
    return sum(map(len, source.assign.values())) if isinstance(source, Kafka) else None


@rule(
    "REALTIME009",
    kind="start",
    guide=_GUIDE,
    wrong="""
    pipeline: quick
    sources:
      orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw, max_offsets_per_trigger: 10000}
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
def real_time_limits(subject: Subject) -> Iterator[Finding]:
    """Real-Time Mode takes records as they come: a source has no limits for a batch.

    What a batch will hold is not known when it begins, for it ends by the clock. And a partition has one task for the
    whole of it, so it cannot be split.
    """
    for query in triggered.queries(subject, "real_time"):
        for source in subject.pipeline.sources_of(query.name):
            given = [name for name in _LIMITS if getattr(source.spec, name, None) is not None]
            if given and not source.spec.is_static:
                named = " and ".join(f"`{name}`" for name in given)
                yield (
                    f"query `{query.name}` runs in real time, and its source `{source.name}` has {named}",
                    f"remove {named}, or use {triggered.slower(query)}",
                    source.origin.at(given[0]),
                )


def _runs_in_real_time(operator: Operator, with_state: bool) -> bool:
    if not operator.is_streaming:
        return True
    if operator.kind == "other":
        return operator.name not in _PYTHON_OPERATORS
    if operator.kind in _WITH_STATE:
        return with_state and not _is_session(operator)
    return operator.kind in _STATELESS and not is_stream_stream(operator)


def _is_session(operator: Operator) -> bool:
    return operator.kind == "aggregate" and groups_by_session(operator)
