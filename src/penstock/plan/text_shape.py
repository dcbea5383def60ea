"""What the text of a query tells of its state, without Spark, and what follows when it has changed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from penstock.facts.operators import Expression, Operator
from penstock.facts.signature import TextOperator, TextShape
from penstock.notation.durations import to_milliseconds
from penstock.plan.compare import Locate
from penstock.plan.expressions import digest
from penstock.plan.verdict import PlanFinding

_STATEFUL = frozenset({"aggregate", "distinct", "deduplicate", "deduplicate_within_watermark", "join", "limit",
                       "process", "pandas_state"})  # fmt: skip
_AGGREGATES = frozenset(
    {"any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or", "bit_xor",
     "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if", "covar_pop", "covar_samp",
     "every", "first", "first_value", "kurtosis", "last", "last_value", "listagg", "max", "max_by", "mean", "median",
     "min", "min_by", "mode", "percentile", "percentile_approx", "skewness", "some", "std", "stddev", "stddev_pop",
     "stddev_samp", "string_agg", "sum", "try_avg", "try_sum", "var_pop", "var_samp", "variance"}
)  # fmt: skip
"""Spark's aggregate functions. One that is missing here is judged by Spark alone."""

_SYNONYMS = {"mean": "avg", "first_value": "first", "any_value": "first", "last_value": "last", "std": "stddev",
             "stddev_samp": "stddev", "variance": "var_samp", "array_agg": "collect_list", "some": "bool_or",
             "every": "bool_and", "approx_percentile": "percentile_approx", "string_agg": "listagg"}  # fmt: skip
_PLAIN = re.compile(r"[\w.]+(?:\((?:distinct )?[\w., ]*\))?$")


def text_shape_of(plan: Operator | None) -> TextShape | None:
    """The shape of a query whose operators its text tells; None where only Spark can tell them."""
    if plan is None:
        return None
    sources = tuple(one.node for one in plan.walk() if one.kind == "source" and one.streams)
    operators = tuple(
        TextOperator(one.kind, tuple(map(_text, one.keys)), tuple(_functions(one)), digest(_below(one)))
        for one in stateful_operators(plan)
    )
    return TextShape(sources, operators, digest(_operator(plan, filters=True)), digest(_operator(plan, filters=False)))


def stateful_operators(operator: Operator) -> Iterator[Operator]:
    """The operators that keep state, inputs first."""
    for one in operator.inputs:
        yield from stateful_operators(one)
    streams = [one.is_streaming for one in operator.inputs]
    if operator.kind in _STATEFUL and streams and (all(streams) if operator.kind == "join" else any(streams)):
        yield operator


def shape_findings(  # noqa: PLR0912 - one for each kind of difference
    before: TextShape | None, now: TextShape | None, same_text: bool, query: str, reset: str, locate: Locate
) -> Iterator[PlanFinding]:
    """What two texts tell. Where they tell too little, that is said."""
    if same_text:
        return
    if before is None or now is None:
        yield not_judged(query, locate(0))
        return
    if before.whole == now.whole:
        return
    undo = f"undo the edit, or run `{reset}` to build the state from all input"
    old, new = before.operators, now.operators
    if before.sources != now.sources:  # others, or in another order, have a finding of their own; or they were renamed
        yield not_judged(query, locate(0))
        return
    if [one.kind for one in old] != [one.kind for one in new]:
        message = f"`{query}` keeps state of another kind than its checkpoint"
        node, where = locate(len(new) - 1)
        kinds = [", ".join(one.kind for one in operators) or "no state" for operators in (old, new)]
        yield PlanFinding("PLAN001", node, message, undo, "restart", where, *kinds)
        return
    judged = True
    for number, (was, is_) in enumerate(zip(old, new, strict=True)):
        if was.below != is_.below:
            judged = False
            continue  # its columns may mean something else now: only Spark can tell
        node, where = locate(number)
        if not (_is_plain(was.keys, is_.keys) and _is_plain(was.functions, is_.functions)):
            judged = False  # `v * 2` and `2 * v` are two texts with one meaning
            continue
        if was.keys != is_.keys:
            message = f"`{node}` groups or compares by other keys, or by the same in another order, than its checkpoint"
            yield PlanFinding(
                "PLAN002", node, message, undo, "restart", where, ", ".join(was.keys), ", ".join(is_.keys)
            )
        if was.functions != is_.functions:
            message = f"`{node}` computes other functions, or the same in another order, than its checkpoint"
            given = ", ".join(was.functions), ", ".join(is_.functions)
            yield PlanFinding("PLAN003", node, message, undo, "restart", where, *given)
    if not new:
        yield _output(query, locate(0))
    elif before.unfiltered == now.unfiltered:
        node, where = locate(0)
        message = (
            f"`{query}` filters its rows in another way from here on. Its state holds what the old filter let through"
        )
        yield PlanFinding("PLAN008", node, message, "nothing, if this is meant", "warn", where)
    elif not judged or (old == new):
        yield not_judged(query, locate(0))


def _is_plain(old: Sequence[str], new: Sequence[str]) -> bool:
    """Are texts that differ so simple that they cannot mean the same: columns, and functions of columns?"""
    different = {*old} ^ {*new}
    return all(_PLAIN.match(text) for text in different)


def not_judged(query: str, place: tuple[str, object]) -> PlanFinding:
    message = f"`{query}` was edited, and the text alone does not tell whether its state still fits"
    return PlanFinding("PLAN027", place[0], message, "run `penstock plan` without `--fast`", "warn", place[1])  # type: ignore[arg-type]


def code_not_judged(query: str, names: Sequence[str], place: tuple[str, object]) -> PlanFinding:
    shown = ", ".join(f"`{name}`" for name in names)
    message = (
        f"the code of {shown} has changed, and the text alone does not tell whether the state of `{query}` uses it"
    )
    return PlanFinding("PLAN027", place[0], message, "run `penstock plan` without `--fast`", "warn", place[1])  # type: ignore[arg-type]


def _output(query: str, place: tuple[str, object]) -> PlanFinding:
    message = f"`{query}` keeps no state; its rows are made in another way from here on"
    return PlanFinding("PLAN023", place[0], message, "nothing, if this is meant", "resume", place[1])  # type: ignore[arg-type]


def _functions(operator: Operator) -> Iterator[str]:
    """The aggregate functions, in order: what is computed of columns that are no keys."""
    if operator.kind != "aggregate":
        return
    found = dict.fromkeys(
        _text(one)
        for column in operator.columns or ()
        for one in column.made_of.walk()
        if one.kind == "function" and one.name in _AGGREGATES
    )
    yield from found


def _below(operator: Operator) -> str:
    return " ".join(_operator(one, filters=False) for one in operator.inputs)


def _operator(operator: Operator, *, filters: bool) -> str:
    inside = [_operator(one, filters=filters) for one in operator.inputs]
    if filters:
        inside += [f"subquery {_operator(one, filters=True)}" for one in operator.subqueries]
    has_columns = bool(operator.columns)
    if (operator.kind == "project" and not has_columns) or (operator.kind == "filter" and not filters):
        return " ".join(inside)
    columns = [f"{_name(one.id)}={_text(one.made_of)}" for one in operator.columns or () if "@" not in one.id]
    if operator.kind == "project" and not columns:
        return " ".join(inside)
    condition = _text(operator.condition) if operator.condition else ""
    keys = ",".join(map(_text, operator.keys))
    node = operator.node if operator.kind == "source" else ""
    details = f"{keys}|{','.join(columns)}|{condition}|{operator.join}|{operator.time}"
    return f"{operator.kind}:{node}[{details}]({' '.join(inside)})"


def _text(expression: Expression) -> str:
    if expression.kind == "column":
        return _name(expression.name)
    if expression.kind == "constant":
        value = expression.value or ""
        with suppress(ValueError):
            return f"{to_milliseconds(value)} ms"
        return repr(value)
    distinct = "distinct " if expression.distinct else ""
    name = _SYNONYMS.get(expression.name, expression.name)
    return f"{name}({distinct}{', '.join(map(_text, expression.arguments))})"


def _name(identity: str) -> str:
    """A column without the name of its table, which an alias may change."""
    return identity.rpartition(".")[2].lower()
