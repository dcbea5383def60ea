"""Operators whose state ends, or whose timers go off, by a clock that the query does not have."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import places
from penstock.checks.rule import Finding, Subject, rule
from penstock.checks.rules.operators import streaming_operators
from penstock.facts.operators import Operator, OperatorKind
from penstock.facts.streams import groups_by_session, marks

_GUIDE = "Unsupported Operations"
_CLOCK_FIX = "set a `watermark` on the source or the step before; or use `processing_time`"


@rule(
    "OPERATION009",
    needs="plan",
    kind="engine",
    guide="Streaming Deduplication",
    wrong="""
    pipeline: once
    sources: {ticks: {type: rate}}
    steps: {unique_ticks: {deduplicate: {of: ticks, keys: [value], within_watermark: true}}}
    sinks: {out: {of: unique_ticks, type: console}}
    """,
    right="""
    pipeline: once
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 hour}}}
    steps: {unique_ticks: {deduplicate: {of: ticks, keys: [value], within_watermark: true}}}
    sinks: {out: {of: unique_ticks, type: console}}
    """,
)
def duplicates_without_watermark(subject: Subject) -> Iterator[Finding]:
    """Duplicates are to be found within a watermark that is not there.

    The watermark says how long a key is remembered. Set it on the source, or on a step before.
    """
    for _, operator in streaming_operators(subject, "deduplicate_within_watermark"):
        if not marks(operator.inputs[0]).event_time:
            yield (
                f"`{operator.node}` takes out duplicates within a watermark, and its rows have none",
                "set a `watermark` on the source or the step before, and keep its column",
                places.of_operator(subject, operator),
            )


@rule(
    "OPERATION010",
    needs="plan",
    kind="start",
    guide="Types of time windows",
    wrong="""
    pipeline: visits
    sources: {clicks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {visits: {sql: "SELECT count(*) AS n FROM clicks GROUP BY session_window(timestamp, '5 minutes')"}}
    sinks: {out: {of: visits, type: console}}
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
def global_session(subject: Subject) -> Iterator[Finding]:
    """A session window needs another column to group by.

    Sessions are found key by key. Spark accepts a query that has no key, and refuses it when its first batch runs.
    """
    for _, operator in streaming_operators(subject, "aggregate"):
        if groups_by_session(operator) and len(operator.keys) == 1:
            yield (
                f"`{operator.node}` groups by a session window alone",
                "group by what a session belongs to as well, such as a user",
                places.of_operator(subject, operator, r"\bsession_window\s*\("),
            )


@rule(
    "OPERATION011",
    needs="plan",
    kind="engine",
    guide="Arbitrary Stateful Operations",
    wrong="""
    pipeline: absent
    sources: {ticks: {type: rate}}
    steps:
      seen:
        pandas_state:
          {of: ticks, key: [value], with: "seen:seen", timeout: event_time, mode: append, output: n INT, state: n INT}
    sinks: {out: {of: seen, type: console}}
    """,
    right="""
    pipeline: absent
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps:
      seen:
        pandas_state:
          {of: ticks, key: [value], with: "seen:seen", timeout: event_time, mode: append, output: n INT, state: n INT}
    sinks: {out: {of: seen, type: console}}
    """,
)
def event_timers_without_watermark(subject: Subject) -> Iterator[Finding]:
    """A timeout on event time needs a watermark.

    The watermark is its clock, and Spark refuses the query without one.
    """
    for operator in _without_a_clock(subject, "pandas_state"):
        yield (
            f"`{operator.node}` has a timeout on event time, and its rows have no watermark",
            _CLOCK_FIX,
            places.of_operator(subject, operator),
        )


@rule(
    "OPERATION013",
    needs="plan",
    guide="Arbitrary Stateful Operations",
    wrong="""
    pipeline: absent
    sources: {ticks: {type: rate}}
    steps: {seen: {process: {of: ticks, key: [value], with: "seen:Seen", time: event_time, output: value BIGINT}}}
    sinks: {out: {of: seen, type: console}}
    """,
    right="""
    pipeline: absent
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {seen: {process: {of: ticks, key: [value], with: "seen:Seen", time: event_time, output: value BIGINT}}}
    sinks: {out: {of: seen, type: console}}
    """,
)
def timers_stand_still(subject: Subject) -> Iterator[Finding]:
    """Timers on event time never go off.

    Spark runs a processor with such timers over rows without a watermark. The watermark is their clock, so they stand
    still, and whatever they should clear stays.
    """
    for operator in _without_a_clock(subject, "process"):
        yield (
            f"the timers of `{operator.node}` never go off: its rows have no watermark, which is their clock",
            _CLOCK_FIX,
            places.of_operator(subject, operator),
        )


def _without_a_clock(subject: Subject, kind: OperatorKind) -> Iterator[Operator]:
    for _, operator in streaming_operators(subject, kind):
        if operator.time == "event_time" and not marks(operator.inputs[0]).event_time:
            yield operator
