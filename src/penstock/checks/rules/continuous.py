"""Continuous Processing against what a query computes, reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places, triggered
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.streams import CLOCKS, called

_GUIDE = "Continuous Processing"
_OPERATORS = ("source", "project", "filter")


@rule(
    "CONTINUOUS001",
    needs="plan",
    kind="start",
    guide=_GUIDE,
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
    for query, plan in triggered.plans(subject, "continuous"):
        for operator in plan.walk():
            if operator.kind not in _OPERATORS:
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
    guide=_GUIDE,
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
    for query, plan in triggered.plans(subject, "continuous"):
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
    guide=_GUIDE,
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
    for query in triggered.queries(subject, "continuous"):
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
    guide=_GUIDE,
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
    yield from triggered.sinks_in_batches(subject, "continuous", ("console", "kafka", "memory"), by_row=False)
