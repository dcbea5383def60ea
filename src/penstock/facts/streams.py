"""What can be said of a tree of operators: event times, state, and what bounds a join. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from penstock.facts.operators import Expression, Operator

Side = Literal["left", "right"]
STATEFUL = (
    "aggregate",
    "distinct",
    "deduplicate",
    "deduplicate_within_watermark",
    "process",
    "pandas_state",
)
CLOCKS = ("current_timestamp", "current_date")
"""Functions that read the machine's time."""
_TIME_FUNCTIONS = ("window", "session_window", "window_time")
_COMPARISONS = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Marks:
    """The columns of an operator's rows that mean something to Spark, by their identity."""

    event_time: frozenset[str] = frozenset()
    """They carry a watermark."""
    sessions: frozenset[str] = frozenset()
    """They are session windows."""


def marks(operator: Operator) -> Marks:
    """Which columns of its rows carry a watermark. A column keeps it when it is renamed, or made into a window."""
    below = [marks(one) for one in operator.inputs]
    if operator.kind == "union":
        return below[0]
    event_time = frozenset[str]().union(*(one.event_time for one in below))
    sessions = frozenset[str]().union(*(one.sessions for one in below))
    if operator.kind == "watermark":
        # A new watermark takes the place of one that an earlier column had.
        return Marks(frozenset(key.name for key in operator.keys), sessions)
    if operator.columns is None:
        return Marks(event_time, sessions)
    given = operator.columns
    return Marks(
        frozenset(column.id for column in given if _carries(column.made_of, event_time)),
        frozenset(column.id for column in given if _is_session(column.made_of, sessions)),
    )


def _carries(made_of: Expression, event_time: frozenset[str]) -> bool:
    if made_of.kind == "column":
        return made_of.name in event_time
    if made_of.name not in _TIME_FUNCTIONS:
        return False
    return any(part.name in event_time for part in made_of.walk() if part.kind == "column")


def _is_session(made_of: Expression, sessions: frozenset[str]) -> bool:
    return made_of.name == "session_window" or (made_of.kind == "column" and made_of.name in sessions)


def aggregates(operator: Operator) -> list[Operator]:
    """Aggregations of streams, the last of them first. `DISTINCT` is one: it groups by every column."""
    return [one for one in operator.walk() if one.kind in ("aggregate", "distinct") and one.is_streaming]


def groups_by_event_time(aggregate: Operator) -> bool:
    """Is a column with a watermark among what it groups by?"""
    below = marks(aggregate.inputs[0])
    if aggregate.kind == "distinct":
        return bool(below.event_time)
    return any(_carries(key, below.event_time) for key in aggregate.keys)


def groups_by_session(aggregate: Operator) -> bool:
    below = marks(aggregate.inputs[0])
    return any(_is_session(key, below.sessions) for key in aggregate.keys)


def is_stream_stream(join: Operator) -> bool:
    return join.kind == "join" and all(one.is_streaming for one in join.inputs)


def keeps_state(operator: Operator) -> bool:
    """Does Spark keep something from batch to batch for it?"""
    return (operator.kind in (*STATEFUL, "limit") and operator.is_streaming) or is_stream_stream(operator)


def called(operator: Operator) -> str:
    """What people call it."""
    if operator.kind == "aggregate" and groups_by_session(operator):
        return "a session window"
    names = {
        "aggregate": "an aggregation",
        "distinct": "a DISTINCT",
        "deduplicate": "a deduplication",
        "deduplicate_within_watermark": "a deduplication within the watermark",
        "join": "a join",
        "process": "a `process` step",
        "pandas_state": "a `pandas_state` step",
        "limit": "a limit",
        "union": "a union",
        "watermark": "a watermark",
    }
    return names.get(operator.kind, f"an operator of its own ({operator.name or operator.kind})")


def is_stateful(plan: Operator) -> bool:
    """Does Spark keep something from batch to batch for any of its operators?"""
    return any(map(keeps_state, plan.walk()))


def only_processes(plan: Operator) -> bool:
    """Is a processor's the only state there is? Spark writes no other state in Avro."""
    return all(one.kind == "process" for one in plan.walk() if keeps_state(one))


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The conditions that must all hold."""
    if condition is None:
        return
    if condition.name == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


def has_event_time_key(join: Operator) -> bool:
    """Is a column with a watermark among the columns that must be equal?"""
    left, right = (marks(one).event_time for one in join.inputs)
    return any(
        any(side.kind == "column" and side.name in left | right for side in condition.arguments)
        for condition in conjuncts(join.condition)
        if condition.name == "="
    )


def bounds(join: Operator, side: Side) -> bool:
    """Does the condition say, from the other side's watermark, which rows of this side can be forgotten?"""
    other = join.inputs[1 if side == "left" else 0]
    with_watermark = marks(other).event_time
    if not with_watermark:
        return False
    return any(_bounds(condition, with_watermark) for condition in conjuncts(join.condition))


def _bounds(condition: Expression, other_times: frozenset[str]) -> bool:
    """`other + c < this + d`: with a watermark on `other`, no later row can match a small `this`."""
    if condition.name not in _COMPARISONS:
        return False
    smaller, greater = condition.arguments if condition.name.startswith("<") else condition.arguments[::-1]
    terms = _terms(smaller, False) + _terms(greater, True)
    if any(term.kind == "function" for term, _ in terms):
        return False
    columns = [(term.name, negative) for term, negative in terms if term.kind == "column"]
    ours = [negative for name, negative in columns if name not in other_times]
    theirs = [name for name, _ in columns if name in other_times]
    return len(ours) == 1 and ours[0] and len(theirs) == 1


def _terms(expression: Expression, negative: bool) -> list[tuple[Expression, bool]]:
    if expression.name == "cast":
        return _terms(expression.arguments[0], negative)
    if expression.name == "+":
        return [term for one in expression.arguments for term in _terms(one, negative)]
    if expression.name == "-" and len(expression.arguments) == 1:
        return _terms(expression.arguments[0], not negative)
    if expression.name == "-":
        return _terms(expression.arguments[0], negative) + _terms(expression.arguments[1], not negative)
    return [(expression, negative)]
