"""Joins: every cell of the guide's join matrix."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.operators import Operator
from penstock.facts.streams import bounds, has_event_time_key, is_stream_stream
from penstock.pipeline.model import Query

_GUIDE = "Support matrix for joins in streaming queries"
_WORD = r"\bJOIN\b"
_WORDS = {
    "left_outer": "left outer",
    "right_outer": "right outer",
    "full_outer": "full outer",
    "left_semi": "left semi",
    "left_anti": "left anti",
}
_STREAM_MUST_BE = {"left_outer": "left", "left_semi": "left", "right_outer": "right"}


def _joins(subject: Subject) -> Iterator[tuple[Query, Operator]]:
    for query, plan in subject.planned():
        for operator in plan.walk():
            if operator.kind == "join" and operator.is_streaming:
                yield query, operator


@rule(
    "JOIN001",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: enriched
    sources:
      orders: {type: rate}
      cities: {type: files, path: cities, format: {type: csv, schema: "value BIGINT, city STRING"}, read: static}
    steps: {placed: {sql: SELECT * FROM orders RIGHT JOIN cities USING (value)}}
    sinks: {out: {of: placed, type: console}}
    """,
    right="""
    pipeline: enriched
    sources:
      orders: {type: rate}
      cities: {type: files, path: cities, format: {type: csv, schema: "value BIGINT, city STRING"}, read: static}
    steps: {placed: {sql: SELECT * FROM orders LEFT JOIN cities USING (value)}}
    sinks: {out: {of: placed, type: console}}
    """,
)
def outer_side_is_static(subject: Subject) -> Iterator[Finding]:
    """An outer join keeps the rows of a static table.

    Which rows of the table have no match is known only when the stream has ended, and it never ends. The side whose
    rows are all kept must be the stream.
    """
    for _, join in _joins(subject):
        left, right = (one.is_streaming for one in join.inputs)
        if left == right:
            continue
        needed = _STREAM_MUST_BE.get(join.join)
        wrong = join.join == "full_outer" or (needed == "left" and right) or (needed == "right" and left)
        if wrong or (join.join == "left_anti" and right):
            yield (
                f"the {_WORDS[join.join]} join in `{join.node}` keeps rows of a static table",
                "keep the rows of the stream: put it on the left of a LEFT JOIN; or use an inner join",
                places.of_operator(subject, join, _WORD),
            )


@rule(
    "JOIN002",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: clicked
    sources:
      shown: {type: rate}
      clicks: {type: rate}
    steps: {seen: {sql: SELECT s.value FROM shown s LEFT JOIN clicks c ON s.value = c.value}}
    sinks: {out: {of: seen, type: console}}
    """,
    right="""
    pipeline: clicked
    sources:
      shown: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
      clicks: {type: rate, watermark: {column: timestamp, delay: 2 hours}}
    steps:
      seen:
        sql: |
          SELECT s.value FROM shown s LEFT JOIN clicks c
          ON s.value = c.value AND c.timestamp BETWEEN s.timestamp AND s.timestamp + INTERVAL 1 HOUR
    sinks: {out: {of: seen, type: console}}
    """,
)
def no_end_of_waiting(subject: Subject) -> Iterator[Finding]:
    """An outer or semi join of two streams never knows that a match will not come.

    A row without a match is written when none can come any more. That needs a watermark and a bound on time between
    the two sides, or equal windows (or event times) among the join's keys.
    """
    for _, join in _joins(subject):
        if not is_stream_stream(join) or has_event_time_key(join):
            continue
        match join.join:
            case "left_outer" | "left_semi":
                ends = bounds(join, "left")
            case "right_outer":
                ends = bounds(join, "right")
            case "full_outer":
                ends = bounds(join, "left") or bounds(join, "right")
            case _:
                ends = True
        if not ends:
            yield (
                f"the {_WORDS[join.join]} join of two streams in `{join.node}` has no watermark with a bound on time",
                "set a `watermark` on both streams, and add a condition such as"
                " `b.time BETWEEN a.time AND a.time + INTERVAL 1 HOUR`",
                places.of_operator(subject, join, _WORD),
            )


@rule(
    "JOIN003",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: unclicked
    sources: {shown: {type: rate}, clicks: {type: rate}}
    steps: {unseen: {sql: SELECT s.value FROM shown s LEFT ANTI JOIN clicks c ON s.value = c.value}}
    sinks: {out: {of: unseen, type: console}}
    """,
    right="""
    pipeline: unclicked
    sources:
      shown: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
      clicks: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
    steps:
      matched:
        sql: |
          SELECT s.value, c.value AS clicked FROM shown s LEFT JOIN clicks c
          ON s.value = c.value AND c.timestamp BETWEEN s.timestamp AND s.timestamp + INTERVAL 1 HOUR
      unseen: {sql: SELECT value FROM matched WHERE clicked IS NULL}
    sinks: {out: {of: unseen, type: console}}
    """,
)
def anti_join_of_streams(subject: Subject) -> Iterator[Finding]:
    """Spark has no anti join of two streams.

    A left outer join gives the same: its rows without a match have NULLs on the right.
    """
    for _, join in _joins(subject):
        if is_stream_stream(join) and join.join in ("left_anti", "other"):
            yield (
                f"`{join.node}` has a {_WORDS.get(join.join, 'special')} join of two streams",
                "use a LEFT JOIN with a bound on time, and keep the rows whose right side is NULL",
                places.of_operator(subject, join, _WORD),
            )


@rule(
    "JOIN004",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: pairs
    sources:
      a: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
      b: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
    steps: {pairs: {sql: SELECT a.value FROM a LEFT JOIN b ON a.value = b.value AND a.timestamp = b.timestamp}}
    sinks: {out: {of: pairs, type: console}}
    queries: {pairs: {mode: update}}
    """,
    right="""
    pipeline: pairs
    sources:
      a: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
      b: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
    steps: {pairs: {sql: SELECT a.value FROM a LEFT JOIN b ON a.value = b.value AND a.timestamp = b.timestamp}}
    sinks: {out: {of: pairs, type: console}}
    """,
)
def join_mode(subject: Subject) -> Iterator[Finding]:
    """A join of two streams cannot be written in this output mode.

    A match is found once and is final: mode `append`. From Spark 4.3 on, inner and semi joins run in `update` too.
    """
    for query, join in _joins(subject):
        mode = query.settings.mode
        newer = subject.spark_is_at_least(4, 3)
        also_update = newer and join.join in ("inner", "left_semi") and mode == "update"
        if newer and join.join in ("left_anti", "other"):
            continue  # refused for its kind, whatever the mode
        if is_stream_stream(join) and mode != "append" and not also_update:
            yield (
                f"query `{query.name}` joins two streams in mode `{mode}`",
                "use mode `append`; to aggregate after the join, group by a window over a column with a watermark",
                places.of_mode(query),
            )
