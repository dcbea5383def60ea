"""Output modes against what a query computes, as Spark's support matrix has it."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.operators import Operator
from penstock.facts.streams import aggregates, groups_by_event_time, groups_by_session, keeps_state, marks
from penstock.pipeline.model import Query

_GUIDE = "Output Modes"


@rule(
    "MODE001",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: totals
    sources: {ticks: {type: rate}}
    steps: {total: {sql: "SELECT value % 10 AS digit, count(*) AS ticks FROM ticks GROUP BY value % 10"}}
    sinks: {out: {of: total, type: console}}
    """,
    right="""
    pipeline: totals
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {total: {sql: "SELECT window, count(*) AS ticks FROM ticks GROUP BY window(timestamp, '1 minute')"}}
    sinks: {out: {of: total, type: console}}
    """,
)
def append_without_watermark(subject: Subject) -> Iterator[Finding]:
    """A group never ends, so it can never be appended.

    In mode `append` a row is written once, when it is final. A group is final when the watermark has passed its event
    time. Without an event-time column with a watermark among what it groups by, that never comes.
    """
    for query, plan in subject.planned():
        found = aggregates(plan)
        if query.settings.mode == "append" and found and not groups_by_event_time(found[0]):
            yield (
                f"query `{query.name}` groups rows in mode `append`, but not by an event time with a watermark",
                "set a `watermark` on the source and group by a window over that column; or use mode `update`,"
                " or `complete`",
                places.of_operator(subject, found[0], r"\bGROUP\s+BY\b|\bDISTINCT\b|\bcount\b"),
            )


@rule(
    "MODE002",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: visits
    sources: {clicks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps:
      visits:
        sql: SELECT value, count(*) AS n FROM clicks GROUP BY session_window(timestamp, '5 minutes'), value
    sinks: {out: {of: visits, type: console}}
    queries: {visits: {mode: update}}
    """,
    right="""
    pipeline: visits
    sources: {clicks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps:
      visits:
        sql: SELECT value, count(*) AS n FROM clicks GROUP BY session_window(timestamp, '5 minutes'), value
    sinks: {out: {of: visits, type: console}}
    """,
)
def session_in_update(subject: Subject) -> Iterator[Finding]:
    """Session windows cannot be written in mode `update`.

    A session grows and melts into its neighbours, so its start and end change: there is no key to update by.
    """
    for query, plan in subject.planned():
        found = aggregates(plan)
        if query.trigger.kind == "real_time":
            continue  # one mode alone, and no sessions: REALTIME004 says so
        if query.settings.mode == "update" and found and groups_by_session(found[0]):
            yield (
                f"query `{query.name}` groups by session windows in mode `update`",
                "use mode `append`, with a watermark: a session is written when it has ended",
                places.of_mode(query),
            )


@rule(
    "MODE003",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: copies
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console}}
    queries: {ticks: {mode: complete}}
    """,
    right="""
    pipeline: copies
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console}}
    """,
)
def complete_without_aggregation(subject: Subject) -> Iterator[Finding]:
    """Mode `complete` needs an aggregation.

    It writes the whole result anew with every batch. Without an aggregation that would be every row there ever was.
    """
    for query, plan in subject.planned():
        if query.settings.mode == "complete" and not aggregates(plan):
            yield (
                f"query `{query.name}` has mode `complete` and aggregates nothing",
                "use mode `append`",
                places.of_mode(query),
            )


@rule(
    "MODE004",
    needs="plan",
    kind="engine",
    guide="Support for multiple stateful operators",
    wrong="""
    pipeline: chained
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps:
      minutes: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}
      hours: {sql: "SELECT sum(n) AS n FROM minutes GROUP BY window(window, '1 hour')"}
    sinks: {out: {of: hours, type: console}}
    queries: {hours: {mode: update}}
    """,
    right="""
    pipeline: chained
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps:
      minutes: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}
      hours: {sql: "SELECT sum(n) AS n FROM minutes GROUP BY window(window, '1 hour')"}
    sinks: {out: {of: hours, type: console}}
    """,
)
def chained_state(subject: Subject) -> Iterator[Finding]:
    """State after state needs rows that are final.

    An aggregation in mode `update` or `complete` sends a group again and again; one that comes after it would count it
    each time, or drop it as late. Only in mode `append` does each group go on once.
    """
    for query, plan in subject.planned():
        for operator in plan.walk():
            if not _counts_as_state(operator):
                continue
            before = [one for one in operator.walk() if one is not operator and _sends_rows_again(one, query)]
            if before:
                yield (
                    f"query `{query.name}` keeps state over `{before[0].node}`, whose rows are not final in mode"
                    f" `{query.settings.mode}`",
                    f"use mode `append`; or write `{before[0].node}` to a table or topic first, and read that in"
                    " another query",
                    places.of_operator(subject, operator),
                )
                break


def _counts_as_state(operator: Operator) -> bool:
    if operator.kind == "deduplicate":
        return operator.is_streaming and any(key.name in marks(operator.inputs[0]).event_time for key in operator.keys)
    return operator.kind != "limit" and keeps_state(operator)


def _sends_rows_again(operator: Operator, query: Query) -> bool:
    if not operator.is_streaming:
        return False
    if operator.kind == "pandas_state":
        return operator.time == "event_time"
    return operator.kind in ("aggregate", "distinct") and query.settings.mode != "append"


@rule(
    "MODE005",
    needs="plan",
    kind="engine",
    guide=_GUIDE,
    wrong="""
    pipeline: first_ones
    sources: {ticks: {type: rate}}
    steps: {few: {sql: SELECT * FROM ticks LIMIT 10}}
    sinks: {out: {of: few, type: console}}
    queries: {few: {mode: update}}
    """,
    right="""
    pipeline: first_ones
    sources: {ticks: {type: rate}}
    steps: {few: {sql: SELECT * FROM ticks WHERE value < 10}}
    sinks: {out: {of: few, type: console}}
    """,
)
def limit_in_update(subject: Subject) -> Iterator[Finding]:
    """A limit cannot be kept in mode `update`.

    Rows that were counted may change later, and then there would be more than the limit.
    """
    for query, plan in subject.planned():
        for operator in plan.walk() if query.settings.mode == "update" else ():
            if operator.kind == "limit" and operator.inputs[0].is_streaming:
                yield (
                    f"query `{query.name}` has a limit in mode `update`",
                    "use mode `append`, or `complete` after an aggregation",
                    places.of_operator(subject, operator, r"\bLIMIT\b"),
                )
                break


@rule(
    "MODE006",
    needs="plan",
    kind="engine",
    guide="Arbitrary Stateful Operations",
    wrong="""
    pipeline: counted
    sources: {ticks: {type: rate}}
    steps:
      counts:
        pandas_state: {of: ticks, key: [value], with: state:count, output: n BIGINT, state: n BIGINT, mode: update}
    sinks: {out: {of: counts, type: console}}
    """,
    right="""
    pipeline: counted
    sources: {ticks: {type: rate}}
    steps:
      counts:
        pandas_state: {of: ticks, key: [value], with: state:count, output: n BIGINT, state: n BIGINT, mode: update}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {mode: update}}
    """,
)
def pandas_state_in_another_mode(subject: Subject) -> Iterator[Finding]:
    """A `pandas_state` step was written for another output mode than the query has.

    What it gives is either final (`append`) or the newest state of things (`update`), and the query must mean the same.
    In `update` it cannot be aggregated, and there can be one such step in a query.
    """
    for query, plan in subject.planned():
        found = [one for one in plan.walk() if one.kind == "pandas_state" and one.is_streaming]
        grouped = aggregates(plan)
        if len(found) > 1:
            yield (
                f"query `{query.name}` has {len(found)} `pandas_state` steps; Spark runs one in a query",
                "write the first to a table or topic and read that in another query, or use `process` steps",
                places.of_operator(subject, found[0]),
            )
        for one in found[:1]:
            if not grouped and one.mode != query.settings.mode:
                yield (
                    f"step `{one.node}` is in mode `{one.mode}` and its query in mode `{query.settings.mode}`",
                    f"give both the same mode: `queries: {{{query.name}: {{mode: {one.mode}}}}}`",
                    places.of_mode(query),
                )
            elif grouped and one.mode == "update":
                yield (
                    f"step `{one.node}` is in mode `update`, and query `{query.name}` aggregates too",
                    "use mode `append` in the step, or aggregate in another query",
                    places.of_operator(subject, one),
                )
            elif grouped and aggregates(one):
                yield (
                    f"step `{one.node}` keeps state over rows that were aggregated before",
                    "aggregate after it, or in another query",
                    places.of_operator(subject, one),
                )


@rule(
    "MODE007",
    needs="plan",
    kind="start",
    guide=_GUIDE,
    wrong="""
    pipeline: minus
    sources:
      ticks: {type: rate}
      known: {type: files, path: known, format: {type: csv, schema: value BIGINT}, read: static}
    steps: {rest: {sql: SELECT value FROM ticks EXCEPT SELECT value FROM known}}
    sinks: {out: {of: rest, type: console}}
    """,
    right="""
    pipeline: minus
    sources:
      ticks: {type: rate}
      known: {type: files, path: known, format: {type: csv, schema: value BIGINT}, read: static}
    steps: {rest: {sql: SELECT t.value FROM ticks t LEFT ANTI JOIN known k ON t.value = k.value}}
    sinks: {out: {of: rest, type: console}}
    """,
)
def except_in_append(subject: Subject) -> Iterator[Finding]:
    """EXCEPT groups equal rows, and in mode `append` a group must end.

    Spark takes it as an aggregation over all columns, and finds out in the first batch that none has a watermark.
    """
    for query, plan in subject.planned():
        for operator in plan.walk() if query.settings.mode == "append" else ():
            if operator.kind == "except" and not operator.inputs[1].is_streaming and not marks(operator).event_time:
                yield (
                    f"`{operator.node}` uses EXCEPT in mode `append`, and no column of it has a watermark",
                    "use `LEFT ANTI JOIN`, which needs no state",
                    places.of_operator(subject, operator, r"\bEXCEPT\b"),
                )
