"""Watermarks and windows: what Spark accepts and what then does nothing, or not what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.operators import Expression, Operator
from penstock.facts.streams import CLOCKS, aggregates, is_stream_stream, keeps_state, marks
from penstock.notation.durations import to_milliseconds
from penstock.pipeline.model import Query, Source

_GUIDE = "Handling Late Data and Watermarking"


@rule(
    "WATERMARK001",
    "warning",
    guide=_GUIDE,
    wrong="""
    pipeline: enriched
    sources:
      orders: {type: rate}
      cities:
        type: files
        path: cities
        format: {type: csv, schema: "value BIGINT, since TIMESTAMP"}
        read: static
        watermark: {column: since, delay: 1 hour}
    steps: {placed: {sql: SELECT * FROM orders JOIN cities USING (value)}}
    sinks: {out: {of: placed, type: console}}
    """,
    right="""
    pipeline: enriched
    sources:
      orders: {type: rate}
      cities: {type: files, path: cities, format: {type: csv, schema: "value BIGINT, since TIMESTAMP"}, read: static}
    steps: {placed: {sql: SELECT * FROM orders JOIN cities USING (value)}}
    sinks: {out: {of: placed, type: console}}
    """,
)
def on_static(subject: Subject) -> Iterator[Finding]:
    """A watermark on a static table does nothing.

    A static table has no late rows and no state to drop.
    """
    for source in subject.pipeline.sources:
        if source.spec.is_static and source.spec.watermark is not None:
            yield (
                f"source `{source.name}` is read as a table, so its watermark does nothing",
                "remove it, or set it on the stream",
                source.origin.at("watermark"),
            )


@rule(
    "WATERMARK002",
    "warning",
    needs="plan",
    guide=_GUIDE,
    wrong="""
    pipeline: late
    sources: {ticks: {type: rate}}
    steps:
      counts:
        sql: SELECT max(timestamp) AS newest, value FROM ticks GROUP BY value
        watermark: {column: newest, delay: 1 hour}
      copies: {sql: SELECT * FROM counts}
    sinks: {out: {of: copies, type: console}}
    queries: {copies: {mode: complete}}
    """,
    right="""
    pipeline: late
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 hour}}}
    steps:
      counts: {sql: "SELECT window, value FROM ticks GROUP BY window(timestamp, '1 hour'), value"}
      copies: {sql: SELECT * FROM counts}
    sinks: {out: {of: copies, type: console}}
    """,
)
def after_aggregation(subject: Subject) -> Iterator[Finding]:
    """A watermark comes after the aggregation that needs it.

    The aggregation drops nothing then, and keeps all its groups. It must be set before, on the source or on a step
    that keeps no state.
    """
    for _, plan in subject.planned():
        for operator in plan.walk():
            if operator.kind != "watermark" or not operator.is_streaming:
                continue
            before = aggregates(operator.inputs[0])
            if before and not any(keeps_state(one) for one in plan.walk() if operator in one.inputs):
                yield (
                    f"the watermark on `{operator.node}` comes after the aggregation in `{before[0].node}`",
                    "set it on the source",
                    places.of_operator(subject, operator),
                )


@rule(
    "WATERMARK003",
    "warning",
    needs="plan",
    guide=_GUIDE,
    wrong="""
    pipeline: unused
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 hour}}}
    steps: {counts: {sql: "SELECT value % 10 AS digit, count(*) AS n FROM ticks GROUP BY value % 10"}}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {mode: complete}}
    """,
    right="""
    pipeline: used
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 hour}}}
    steps: {counts: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 hour')"}}
    sinks: {out: {of: counts, type: console}}
    """,
)
def not_used(subject: Subject) -> Iterator[Finding]:
    """The aggregation does not group by the column of the watermark.

    Then the watermark drops neither late rows nor old groups. Often it stands on another column than the window.
    """
    for query, plan in subject.planned():
        for operator in aggregates(plan):
            times = marks(operator.inputs[0]).event_time
            grouped = {part.name for key in operator.keys for part in key.walk()}
            unused = operator.kind == "aggregate" and operator.keys and times and not times & grouped
            if unused and query.settings.mode != "append" and not _serves_others(subject, query):
                columns = ", ".join(sorted(f"`{_plain(name)}`" for name in times))
                yield (
                    f"`{operator.node}` does not group by {columns}, so the watermark drops nothing",
                    "group by a window over that column, or set the watermark on the column of the window",
                    places.of_operator(subject, operator, r"\bGROUP\s+BY\b"),
                )


def _serves_others(subject: Subject, query: Query) -> bool:
    """Do the sources feed another query too, which may be the one that needs the watermark?"""
    ours = {source.name for source in subject.pipeline.sources_of(query.name)}
    others = [one.name for one in subject.pipeline.queries if one.name != query.name]
    return any(source.name in ours for other in others for source in subject.pipeline.sources_of(other))


def _plain(name: str) -> str:
    return name.rpartition(".")[2].partition("#")[0]


@rule(
    "WATERMARK004",
    "warning",
    guide=_GUIDE,
    wrong="""
    pipeline: patient
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 30 days}}}
    steps: {counts: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}}
    sinks: {out: {of: counts, type: console}}
    """,
    right="""
    pipeline: patient
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 hour}}}
    steps: {counts: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}}
    sinks: {out: {of: counts, type: console}}
    """,
)
def longer_than_retention(subject: Subject) -> Iterator[Finding]:
    """A watermark waits longer than sources keep their rows.

    Kafka keeps records for seven days unless its topic says otherwise. Rows that late are gone before they could count,
    and the state of all that time is kept for them.
    """
    for node in subject.pipeline.nodes.values():
        watermark = node.spec.watermark
        if watermark is not None and to_milliseconds(watermark.delay) > _RETENTION_MS:
            yield (
                f"the watermark on `{node.name}` waits {watermark.delay}, longer than most sources keep their rows",
                "wait as long as rows really come late; what is older can be loaded again from a table",
                node.origin.at("watermark", "delay"),
            )


_RETENTION_MS = 7 * 24 * 3_600_000


@rule(
    "WINDOW001",
    needs="plan",
    kind="engine",
    guide="Types of time windows",
    wrong="""
    pipeline: gaps
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {counts: {sql: "SELECT count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute', '5 minutes')"}}
    sinks: {out: {of: counts, type: console}}
    """,
    right="""
    pipeline: gaps
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {counts: {sql: "SELECT count(*) AS n FROM ticks GROUP BY window(timestamp, '5 minutes', '1 minute')"}}
    sinks: {out: {of: counts, type: console}}
    """,
)
def slide_longer_than_window(subject: Subject) -> Iterator[Finding]:
    """A window slides by more than its length.

    Rows between two windows would be in none. Spark refuses it.
    """
    for operator, function in _time_functions(subject, "window"):
        length, slide = _milliseconds(function, 1), _milliseconds(function, 2)
        if length is not None and slide is not None and (slide > length or slide <= 0):
            yield (
                f"`{operator.node}` has windows of {length:,} ms every {slide:,} ms",
                "let a window slide by its length at the most",
                places.of_operator(subject, operator, r"\bwindow\s*\("),
            )


@rule(
    "WINDOW002",
    "warning",
    needs="plan",
    guide="Types of time windows",
    wrong="""
    pipeline: gaps
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {counts: {sql: "SELECT value FROM ticks GROUP BY session_window(timestamp, '-1 minute'), value"}}
    sinks: {out: {of: counts, type: console}}
    """,
    right="""
    pipeline: gaps
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {counts: {sql: "SELECT value FROM ticks GROUP BY session_window(timestamp, '1 minute'), value"}}
    sinks: {out: {of: counts, type: console}}
    """,
)
def no_gap(subject: Subject) -> Iterator[Finding]:
    """A session window has no gap.

    Rows with a gap of zero or less belong to no session and are dropped.
    """
    for operator, function in _time_functions(subject, "session_window"):
        gap = _milliseconds(function, 1)
        if gap is not None and gap <= 0:
            yield (
                f"`{operator.node}` has sessions with a gap of {gap:,} ms: all rows are dropped",
                "give a gap such as '5 minutes'",
                places.of_operator(subject, operator, r"\bsession_window\s*\("),
            )


@rule(
    "WINDOW003",
    "warning",
    needs="plan",
    guide="Window Operations on Event Time",
    wrong="""
    pipeline: clocks
    sources: {ticks: {type: rate}}
    steps: {counts: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(current_timestamp(), '1 minute')"}}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {mode: complete}}
    """,
    right="""
    pipeline: clocks
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {counts: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}}
    sinks: {out: {of: counts, type: console}}
    """,
)
def window_on_the_clock(subject: Subject) -> Iterator[Finding]:
    """A window is over the clock of the machine, not over event time.

    A batch that comes late, or that is replayed after a crash, puts its rows into another window.
    """
    for operator, function in _time_functions(subject, "window", "session_window"):
        if any(part.name in CLOCKS for part in function.walk()):
            yield (
                f"`{operator.node}` has windows over the current time",
                "use the time at which things happened, from a column of the source",
                places.of_operator(subject, operator, r"\b(session_)?window\s*\("),
            )


@rule(
    "JOIN005",
    "warning",
    needs="plan",
    guide="Outer Joins with Watermarking",
    wrong="""
    pipeline: clicked
    sources:
      shown: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
      clicks: {type: rate, watermark: {column: timestamp, delay: 2 hours}}
    steps:
      seen:
        sql: |
          SELECT s.value FROM shown s LEFT JOIN clicks c ON s.value = c.value
          AND c.timestamp BETWEEN s.timestamp - INTERVAL 1 HOUR AND s.timestamp + INTERVAL 1 HOUR
    sinks: {out: {of: seen, type: console}}
    queries: {seen: {spark: {spark.sql.streaming.noDataMicroBatches.enabled: false}}}
    """,
    right="""
    pipeline: clicked
    sources:
      shown: {type: rate, watermark: {column: timestamp, delay: 1 hour}}
      clicks: {type: rate, watermark: {column: timestamp, delay: 2 hours}}
    steps:
      seen:
        sql: |
          SELECT s.value FROM shown s LEFT JOIN clicks c ON s.value = c.value
          AND c.timestamp BETWEEN s.timestamp - INTERVAL 1 HOUR AND s.timestamp + INTERVAL 1 HOUR
    sinks: {out: {of: seen, type: console}}
    """,
)
def idle_input_delays(subject: Subject) -> Iterator[Finding]:
    """Rows without a match wait for the next batch with data.

    An outer join gives them when the watermark of both inputs has passed. An idle input holds the watermark back, and
    without batches that have no data nothing comes out before new rows arrive.
    """
    for query, plan in subject.planned():
        off = str(query.settings.spark.get("spark.sql.streaming.noDataMicroBatches.enabled", "true")).lower() == "false"
        for join in plan.walk() if off else ():
            if is_stream_stream(join) and join.join.endswith("outer"):
                yield (
                    f"the outer join in `{join.node}` gives rows without a match only when new rows come",
                    "remove `spark.sql.streaming.noDataMicroBatches.enabled: false`",
                    query.origin.at("spark", "spark.sql.streaming.noDataMicroBatches.enabled"),
                )


@rule(
    "WATERMARK005",
    kind="start",
    guide=_GUIDE,
    wrong="""
    pipeline: trimmed
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps:
      whole: {sql: "SELECT date_trunc('minute', timestamp) AS minute, value FROM ticks",
              watermark: {column: minute, delay: 1 minute}}
    sinks: {out: {of: whole, type: console}}
    """,
    right="""
    pipeline: trimmed
    sources: {ticks: {type: rate}}
    steps:
      whole: {sql: "SELECT date_trunc('minute', timestamp) AS minute, value FROM ticks",
              watermark: {column: minute, delay: 1 minute}}
    sinks: {out: {of: whole, type: console}}
    """,
)
def set_twice(subject: Subject) -> Iterator[Finding]:
    """Rows that have a watermark cannot get another.

    Spark says so only in the first batch. Set it once: on the source, or on the step that makes the time.
    """
    for step in subject.pipeline.steps:
        if step.spec.watermark is None:
            continue
        for node in subject.pipeline.upstream(step.name):
            static = isinstance(node, Source) and node.spec.is_static
            if node.name != step.name and node.spec.watermark is not None and not static:
                yield (
                    f"step `{step.name}` sets a watermark, and the rows of `{node.name}` that it is made from have one",
                    "remove one of the two",
                    step.origin.at("watermark"),
                )
                break


def _time_functions(subject: Subject, *names: str) -> Iterator[tuple[Operator, Expression]]:
    """Windows as they are written in SQL; a plan of Spark's shows arithmetic in their place."""
    seen: set[tuple[str, Expression]] = set()
    for plan in subject.written.values():
        for operator in plan.walk():
            for part in operator.expressions():
                if part.name in names and (operator.node, part) not in seen and part.kind == "function":
                    seen.add((operator.node, part))
                    yield operator, part


def _milliseconds(function: Expression, position: int) -> int | None:
    """A span of time among the arguments, where it is constant."""
    if len(function.arguments) <= position:
        return None
    text = (function.arguments[position].value or "").strip()
    found = re.fullmatch(r"(-?)\s*(.*)", text)
    try:
        return (-1 if found and found[1] else 1) * to_milliseconds(found[2] if found else text)
    except ValueError:
        return None
