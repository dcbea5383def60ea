"""State that grows: what Spark accepts, and what fills a disk months later."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.streams import aggregates, bounds, groups_by_event_time, has_event_time_key, is_stream_stream, marks
from penstock.pipeline.model import Query

_DAY_SECONDS = 86_400
_ROW_BYTES = 100
"""What a row in a state store takes at the least: key, value, and the store's own."""


@rule(
    "GROWTH001",
    "warning",
    needs="plan",
    guide="Streaming Deduplication",
    wrong="""
    pipeline: once
    sources: {ticks: {type: rate, rows_per_second: 1000}}
    steps: {unique_ticks: {deduplicate: {of: ticks, keys: [value]}}}
    sinks: {out: {of: unique_ticks, type: console}}
    """,
    right="""
    pipeline: once
    sources: {ticks: {type: rate, rows_per_second: 1000, watermark: {column: timestamp, delay: 1 hour}}}
    steps: {unique_ticks: {deduplicate: {of: ticks, keys: [value], within_watermark: true}}}
    sinks: {out: {of: unique_ticks, type: console}}
    """,
)
def every_key_is_kept(subject: Subject) -> Iterator[Finding]:
    """Every key is remembered for ever, to find its duplicates.

    State is dropped when the watermark has passed it. That needs a watermark, and its column among the keys; or
    `within_watermark`, which forgets a key some time after it came, whatever its columns are.
    """
    for query, plan in subject.planned():
        for operator in plan.walk():
            if operator.kind != "deduplicate" or not operator.is_streaming:
                continue
            times = marks(operator.inputs[0]).event_time
            if not any(key.name in times for key in operator.keys):
                why = "and the column of the watermark is not among them" if times else "without a watermark"
                yield (
                    f"`{operator.node}` remembers every key for ever, {why}{_growth(subject, query)}",
                    "add `within_watermark: true`" + ("" if times else " and a `watermark` on the source"),
                    places.of_operator(subject, operator),
                )


@rule(
    "GROWTH002",
    "warning",
    needs="plan",
    guide="Handling Late Data and Watermarking",
    wrong="""
    pipeline: totals
    sources: {ticks: {type: rate, rows_per_second: 1000}}
    steps: {total: {sql: "SELECT value AS id, count(*) AS n FROM ticks GROUP BY value"}}
    sinks: {out: {of: total, type: console}}
    queries: {total: {mode: update}}
    """,
    right="""
    pipeline: totals
    sources: {ticks: {type: rate, rows_per_second: 1000, watermark: {column: timestamp, delay: 10 minutes}}}
    steps: {total: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}}
    sinks: {out: {of: total, type: console}}
    queries: {total: {mode: update}}
    """,
)
def every_group_is_kept(subject: Subject) -> Iterator[Finding]:
    """Every group is kept for ever.

    A group is dropped when the watermark has passed its event time. Groups without one stay, which is right for a
    handful, such as countries, and fills the disk for many, such as orders.
    """
    for query, plan in subject.planned():
        for operator in aggregates(plan) if query.settings.mode == "update" else ():
            if (operator.keys or operator.kind == "distinct") and not groups_by_event_time(operator):
                yield (
                    f"`{operator.node}` keeps every group for ever{_growth(subject, query)}",
                    "group by a window over an event time with a `watermark`; leave it if the groups are few",
                    places.of_operator(subject, operator, r"\bGROUP\s+BY\b|\bDISTINCT\b"),
                )


@rule(
    "GROWTH003",
    "warning",
    needs="plan",
    guide="Output Modes",
    wrong="""
    pipeline: totals
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 10 minutes}}}
    steps: {total: {sql: "SELECT value, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute'), value"}}
    sinks: {out: {of: total, type: memory}}
    queries: {total: {mode: complete}}
    """,
    right="""
    pipeline: totals
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 10 minutes}}}
    steps: {total: {sql: "SELECT value, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute'), value"}}
    sinks: {out: {of: total, type: memory}}
    """,
)
def complete_with_many_groups(subject: Subject) -> Iterator[Finding]:
    """Mode `complete` keeps every window and writes them all with every batch.

    The watermark drops nothing then: the whole result is written anew each time, and grows with every minute.
    """
    for query, plan in subject.planned():
        found = aggregates(plan)
        if query.settings.mode == "complete" and found and groups_by_event_time(found[0]):
            yield (
                f"query `{query.name}` groups by event time in mode `complete`: its watermark drops nothing",
                "use mode `update` or `append`",
                places.of_mode(query),
            )


@rule(
    "GROWTH004",
    "warning",
    needs="plan",
    guide="Inner Joins with optional Watermarking",
    wrong="""
    pipeline: pairs
    sources: {a: {type: rate}, b: {type: rate}}
    steps: {pairs: {sql: SELECT a.value FROM a JOIN b ON a.value = b.value}}
    sinks: {out: {of: pairs, type: console}}
    """,
    right="""
    pipeline: pairs
    sources:
      a: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
      b: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
    steps:
      pairs:
        sql: |
          SELECT a.value FROM a JOIN b ON a.value = b.value
          AND b.timestamp BETWEEN a.timestamp - INTERVAL 1 HOUR AND a.timestamp + INTERVAL 1 HOUR
    sinks: {out: {of: pairs, type: console}}
    """,
)
def every_row_is_kept(subject: Subject) -> Iterator[Finding]:
    """A join of two streams keeps every row of a side for ever.

    A row can be dropped when no match can come any more. Both sides need a watermark, and the condition a bound on time
    in both directions: not earlier than, and not later than.
    """
    for query, plan in subject.planned():
        for join in plan.walk():
            if not is_stream_stream(join) or has_event_time_key(join):
                continue
            kept = [
                side for side, ends in (("left", bounds(join, "left")), ("right", bounds(join, "right"))) if not ends
            ]
            if kept:
                yield (
                    f"the join in `{join.node}` keeps every row of the {' and the '.join(kept)} side for ever"
                    f"{_growth(subject, query)}",
                    "set a `watermark` on both streams, and bound the time between them in both directions:"
                    " `b.time BETWEEN a.time - INTERVAL 1 HOUR AND a.time + INTERVAL 1 HOUR`",
                    places.of_operator(subject, join, r"\bJOIN\b"),
                )


def _growth(subject: Subject, query: Query) -> str:
    """How much that is in a day, where the rate of the sources is known."""
    rates = [getattr(source.spec, "rows_per_second", None) for source in subject.pipeline.sources_of(query.name)]
    known = [rate for rate in rates if rate]
    if not known:
        return ""
    megabytes = sum(known) * _DAY_SECONDS * _ROW_BYTES / 1_000_000
    return f": up to {megabytes:,.0f} MB more each day" if megabytes >= 1 else ""
