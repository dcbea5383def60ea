"""Asynchronous progress against what a query computes, where it writes and when it runs."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.streams import called, is_stateful, keeps_state
from penstock.pipeline.progress_beside_work import is_asked, sink_in_the_way, trigger_in_the_way
from penstock.query.async_progress import CACHE, lacks_cache

_GUIDE = "Asynchronous progress tracking"
_FIX = "remove `async_progress`, or set it to `false`"

_UNIQUE = """
    pipeline: unique
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
    queries: {unique_orders: {async_progress: %s}}
    """


@rule(
    "ASYNC001",
    needs="plan",
    kind="start",
    guide=_GUIDE,
    wrong=_UNIQUE % "true",
    right=_UNIQUE % "false",
)
def async_state(subject: Subject) -> Iterator[Finding]:
    """Asynchronous progress is for queries without state.

    State belongs to a batch that is written down. With asynchronous progress most batches are not.
    """
    for query, plan in subject.planned():
        if not is_asked(query) or not is_stateful(plan):
            continue
        found = next(one for one in plan.walk() if keeps_state(one))
        yield (
            f"query `{query.name}` has `async_progress`, and `{found.node}` has {called(found)}, which keeps state",
            _FIX,
            places.of_operator(subject, found),
        )


@rule(
    "ASYNC002",
    kind="start",
    guide=_GUIDE,
    wrong="""
    pipeline: copied
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: delta, path: out}}
    queries: {orders: {async_progress: true}}
    """,
    right="""
    pipeline: copied
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {async_progress: true}}
    """,
)
def async_sink(subject: Subject) -> Iterator[Finding]:
    """Asynchronous progress is for one Kafka sink that Spark itself writes to.

    Other sinks know by its number that they have a batch. With asynchronous progress the same number can stand for
    other rows after a crash, and rows would be passed over.
    """
    for query in subject.pipeline.queries:
        if not is_asked(query) or (why := sink_in_the_way(subject.pipeline, query)) is None:
            continue
        yield f"query `{query.name}` has `async_progress`, and {why}", _FIX, query.origin.at("async_progress")


@rule(
    "ASYNC003",
    kind="start",
    guide=_GUIDE,
    wrong="""
    pipeline: copied
    sources:
      orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw, max_offsets_per_trigger: 9999}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: available_now, async_progress: true}}
    """,
    right="""
    pipeline: copied
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {trigger: 1 second, async_progress: true}}
    """,
)
def async_trigger(subject: Subject) -> Iterator[Finding]:
    """Asynchronous progress is for triggers that run batch after batch without an end.

    A query that ends by itself must have written down all that it did. One that hands rows on as they come writes its
    progress down in its own way.
    """
    for query in subject.pipeline.queries:
        if is_asked(query) and trigger_in_the_way(query):
            yield (
                f"query `{query.name}` has `async_progress` with the trigger `{query.trigger}`",
                f"{_FIX}; or use a trigger such as `1 second`, or `latency: low`",
                query.origin.at("async_progress"),
            )


@rule(
    "ASYNC004",
    needs="plan",
    kind="start",
    guide=_GUIDE,
    wrong="""
    pipeline: copied
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {async_progress: true, spark: {spark.sql.streaming.metadataCache.enabled: false}}}
    """,
    right="""
    pipeline: copied
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: kafka, servers: localhost:9092, topic: copies}}
    queries: {orders: {async_progress: true}}
    """,
)
def async_cache(subject: Subject) -> Iterator[Finding]:
    """Asynchronous progress needs Spark's cache of its logs.

    Batches that are not yet written down are kept there and nowhere else. Without it Spark fails as the query starts,
    and says `assertion failed`. From Spark 4.3 on, a query in real time without state has asynchronous progress too.
    """
    for query, plan in subject.planned():
        own = query.settings.spark
        in_real_time = query.trigger.kind == "real_time" and subject.spark_is_at_least(4, 3) and not is_stateful(plan)
        if (is_asked(query) or in_real_time) and lacks_cache({**subject.project.spark, **own}):
            origin = query.origin if CACHE in own else subject.project.origin
            yield (
                f"query `{query.name}` {'has `async_progress`' if is_asked(query) else 'runs in real time'},"
                f" and `{CACHE}` is off",
                f"remove `{CACHE}`" + (", or set `async_progress: false`" if is_asked(query) else ""),
                origin.at("spark", CACHE),
            )
