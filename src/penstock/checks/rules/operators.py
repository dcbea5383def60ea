"""Operators that Spark does not run on streams."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.operators import Operator, OperatorKind
from penstock.facts.streams import aggregates
from penstock.pipeline.model import Query

_GUIDE = "Unsupported Operations"


def streaming_operators(subject: Subject, *kinds: OperatorKind) -> Iterator[tuple[Query, Operator]]:
    """Each operator of some kinds that works on a stream, with its query."""
    for query, plan in subject.planned():
        for operator in plan.walk():
            if operator.kind in kinds and operator.is_streaming:
                yield query, operator


@rule(
    "OPERATION001",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: sorted
    sources: {ticks: {type: rate}}
    steps: {newest: {sql: SELECT * FROM ticks ORDER BY value DESC}}
    sinks: {out: {of: newest, type: console}}
    """,
    right="""
    pipeline: sorted
    sources: {ticks: {type: rate}}
    steps: {most: {sql: "SELECT value % 10 AS digit, count(*) AS n FROM ticks GROUP BY value % 10 ORDER BY n DESC"}}
    sinks: {out: {of: most, type: console}}
    queries: {most: {mode: complete}}
    """,
)
def sort(subject: Subject) -> Iterator[Finding]:
    """A stream cannot be sorted.

    There is always one more row to come. An aggregation in mode `complete` writes all its rows each time, and those
    can be sorted.
    """
    for query, operator in streaming_operators(subject, "sort"):
        if not (query.settings.mode == "complete" and _has_aggregate(operator)):
            yield (
                f"`{operator.node}` sorts a stream",
                "sort where the rows are read; or aggregate in mode `complete` and sort that",
                places.of_operator(subject, operator, r"\b(ORDER|SORT)\s+BY\b"),
            )


def _has_aggregate(operator: Operator) -> bool:
    return any(one.kind == "aggregate" for one in aggregates(operator))


@rule(
    "OPERATION002",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: visitors
    sources: {ticks: {type: rate}}
    steps: {people: {sql: SELECT count(DISTINCT value) AS people FROM ticks}}
    sinks: {out: {of: people, type: console}}
    queries: {people: {mode: complete}}
    """,
    right="""
    pipeline: visitors
    sources: {ticks: {type: rate}}
    steps: {people: {sql: SELECT approx_count_distinct(value) AS people FROM ticks}}
    sinks: {out: {of: people, type: console}}
    queries: {people: {mode: complete}}
    """,
)
def distinct_aggregate(subject: Subject) -> Iterator[Finding]:
    """Distinct values of a stream cannot be aggregated.

    Spark would have to keep every value that it ever saw, for each group.
    """
    for _, operator in streaming_operators(subject, "aggregate"):
        if any(part.distinct for part in operator.expressions()):
            yield (
                f"`{operator.node}` aggregates distinct values of a stream",
                "use `approx_count_distinct(…)`; or take duplicates out before, and count what is left",
                places.of_operator(subject, operator, r"\(\s*DISTINCT\b"),
            )


@rule(
    "OPERATION003",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: ranked
    sources: {ticks: {type: rate}}
    steps: {ranked: {sql: "SELECT *, row_number() OVER (PARTITION BY value ORDER BY timestamp) AS place FROM ticks"}}
    sinks: {out: {of: ranked, type: console}}
    """,
    right="""
    pipeline: ranked
    sources: {ticks: {type: rate}}
    steps: {ranked: {process: {of: ticks, key: [value], with: top_n, options: {n: 3, by: timestamp}}}}
    sinks: {out: {of: ranked, type: console}}
    queries: {ranked: {mode: update}}
    """,
)
def window_function(subject: Subject) -> Iterator[Finding]:
    """A stream has no window functions over rows.

    `OVER (PARTITION BY …)` looks at all rows of a partition, and those of a stream are never all there. Windows over
    event time are another thing: `GROUP BY window(time, '10 minutes')`.
    """
    for _, operator in streaming_operators(subject, "window_function"):
        yield (
            f"`{operator.node}` uses a window function on a stream",
            "group by a window over event time; or keep what you need with a `process` step such as `top_n`",
            places.of_operator(subject, operator, r"\bOVER\b"),
        )


@rule(
    "OPERATION004",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: both
    sources:
      ticks: {type: rate}
      old: {type: files, path: old, format: {type: csv, schema: "timestamp TIMESTAMP, value BIGINT"}, read: static}
    steps: {all_ticks: {sql: SELECT * FROM ticks UNION ALL SELECT * FROM old}}
    sinks: {out: {of: all_ticks, type: console}}
    """,
    right="""
    pipeline: both
    sources:
      ticks: {type: rate}
      old: {type: files, path: old, format: {type: csv, schema: "timestamp TIMESTAMP, value BIGINT"}}
    steps: {all_ticks: {sql: SELECT * FROM ticks UNION ALL SELECT * FROM old}}
    sinks: {out: {of: all_ticks, type: console}}
    """,
)
def union_with_static(subject: Subject) -> Iterator[Finding]:
    """A stream and a static table cannot be put together with UNION.

    The rows of the table would come again with every batch.
    """
    for _, operator in streaming_operators(subject, "union"):
        if len({one.is_streaming for one in operator.inputs}) > 1:
            yield (
                f"`{operator.node}` makes a union of a stream and a static table",
                "read both as streams: `read: stream` takes the rows of the table once",
                places.of_operator(subject, operator, r"\bUNION\b"),
            )


@rule(
    "OPERATION005",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: minus
    sources: {ticks: {type: rate}, others: {type: rate}}
    steps: {rest: {sql: SELECT value FROM ticks EXCEPT SELECT value FROM others}}
    sinks: {out: {of: rest, type: console}}
    """,
    right="""
    pipeline: minus
    sources:
      ticks: {type: rate}
      others: {type: files, path: others, format: {type: csv, schema: value BIGINT}, read: static}
    steps: {rest: {sql: SELECT t.value FROM ticks t LEFT ANTI JOIN others o ON t.value = o.value}}
    sinks: {out: {of: rest, type: console}}
    """,
)
def set_operation(subject: Subject) -> Iterator[Finding]:
    """Streams have no EXCEPT and no INTERSECT.

    Whether a row is in the other stream too is known only when that has ended.
    """
    for _, operator in streaming_operators(subject, "except", "intersect"):
        if operator.inputs[1].is_streaming or operator.kind == "intersect":
            yield (
                f"`{operator.node}` uses {operator.kind.upper()} on a stream",
                "join with a static table: `LEFT ANTI JOIN` in place of EXCEPT, `LEFT SEMI JOIN` in place of INTERSECT",
                places.of_operator(subject, operator, operator.kind),
            )


@rule(
    "OPERATION006",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: later
    sources: {ticks: {type: rate}}
    steps: {rest: {sql: SELECT * FROM ticks LIMIT 10 OFFSET 5}}
    sinks: {out: {of: rest, type: console}}
    """,
    right="""
    pipeline: later
    sources: {ticks: {type: rate}}
    steps: {rest: {sql: SELECT * FROM ticks WHERE value >= 5}}
    sinks: {out: {of: rest, type: console}}
    """,
)
def offset(subject: Subject) -> Iterator[Finding]:
    """A stream cannot skip its first rows with OFFSET.

    Each batch would skip some, and which rows are the first is not told.
    """
    for query, plan in subject.planned():
        for operator in plan.walk():
            if operator.kind == "offset":
                yield (
                    f"`{operator.node}` uses OFFSET in query `{query.name}`",
                    "leave rows out with a condition",
                    places.of_operator(subject, operator, r"\bOFFSET\b"),
                )


@rule(
    "OPERATION007",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: some
    sources: {ticks: {type: rate}}
    steps: {few: {sql: SELECT * FROM ticks TABLESAMPLE (10 PERCENT)}}
    sinks: {out: {of: few, type: console}}
    """,
    right="""
    pipeline: some
    sources: {ticks: {type: rate}}
    steps: {few: {sql: SELECT * FROM ticks WHERE hash(value) % 10 = 0}}
    sinks: {out: {of: few, type: console}}
    """,
)
def sample(subject: Subject) -> Iterator[Finding]:
    """A stream cannot be sampled.

    A replayed batch would pick other rows.
    """
    for _, operator in streaming_operators(subject, "sample"):
        yield (
            f"`{operator.node}` samples a stream",
            "pick rows by a hash of their key: `WHERE hash(id) % 10 = 0`; a replay picks the same ones",
            places.of_operator(subject, operator, r"\bTABLESAMPLE\b"),
        )


@rule(
    "OPERATION008",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: numbered
    sources: {ticks: {type: rate}}
    steps: {numbered: {sql: "SELECT monotonically_increasing_id() AS id, value FROM ticks"}}
    sinks: {out: {of: numbered, type: console}}
    """,
    right="""
    pipeline: numbered
    sources: {ticks: {type: rate}}
    steps: {numbered: {sql: "SELECT uuid() AS id, value FROM ticks"}}
    sinks: {out: {of: numbered, type: console}}
    """,
)
def row_numbers(subject: Subject) -> Iterator[Finding]:
    """`monotonically_increasing_id()` begins anew with every batch.

    The same numbers would be given again and again, so Spark refuses it on streams.
    """
    for query, plan in subject.planned():
        for operator in plan.walk():
            if any(part.name == "monotonically_increasing_id" for part in operator.expressions()):
                yield (
                    f"`{operator.node}` numbers rows with `monotonically_increasing_id()` in query `{query.name}`",
                    "take an id from the source (topic, partition, offset), or make one with `uuid()`",
                    places.of_operator(subject, operator, "monotonically_increasing_id"),
                )


@rule(
    "OPERATION012",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: known
    sources: {ticks: {type: rate}, others: {type: rate}}
    steps: {shared: {sql: SELECT * FROM ticks WHERE value IN (SELECT value FROM others)}}
    sinks: {out: {of: shared, type: console}}
    """,
    right="""
    pipeline: known
    sources:
      ticks: {type: rate}
      others: {type: files, path: others, format: {type: csv, schema: value BIGINT}, read: static}
    steps: {shared: {sql: SELECT * FROM ticks WHERE value IN (SELECT value FROM others)}}
    sinks: {out: {of: shared, type: console}}
    """,
)
def stream_in_a_condition(subject: Subject) -> Iterator[Finding]:
    """A stream stands in a subquery.

    A condition needs all rows of the subquery at once, and a stream never has them all.
    """
    for query in subject.pipeline.queries:
        plan = subject.plan(query)
        for operator in plan.walk() if plan else ():
            if any(one.is_streaming for one in operator.subqueries):
                yield (
                    f"`{operator.node}` reads a stream inside a condition or an expression, in query `{query.name}`",
                    "join with it; or read it with `read: static`",
                    places.of_operator(subject, operator, r"\(\s*SELECT\b"),
                )
