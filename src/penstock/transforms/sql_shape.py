"""The shape of a SELECT as plain lists and mappings: enough to judge it without a JVM, and quick to remember."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cache import Remembered
from penstock.transforms import sql_parser

if TYPE_CHECKING:
    from sqlglot import exp

Shape = Mapping[str, Any]
"""A SELECT: `from`, `joins`, `where`, `group`, `select`, and words for what else it has; or a `set` of two."""

_JOINS = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left_outer",
    ("LEFT", "OUTER"): "left_outer",
    ("RIGHT", ""): "right_outer",
    ("RIGHT", "OUTER"): "right_outer",
    ("FULL", ""): "full_outer",
    ("FULL", "OUTER"): "full_outer",
    ("LEFT", "SEMI"): "left_semi",
    ("", "SEMI"): "left_semi",
    ("LEFT", "ANTI"): "left_anti",
    ("", "ANTI"): "left_anti",
}
_CLOCKS = {"CurrentTimestamp", "CurrentDate", "Localtimestamp", "CurrentDatetime"}
_PLAIN = {"EQ": "=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<=", "And": "and", "Add": "+", "Sub": "-", "Neg": "-"}


@cache
def shape_of(sql: str) -> Shape | None:
    """The shape of a SELECT, or None where the quick parser cannot read it. Remembered between commands."""
    known = _memory().get(sql)
    if known is None:
        known = _shape_of(sql) or {}
        _memory().put(sql, known)
    return known or None


@cache
def _memory() -> Remembered:
    # What was found is known for this reader and that parser.
    return Remembered(f"shape-{Path(__file__).stat().st_mtime_ns}-{sql_parser.stamp()}")


def _shape_of(sql: str) -> Shape | None:
    if sql_parser.sets_watermark(sql):
        return None
    try:
        tree = sql_parser.parsed(sql)
        return _query(tree, {})
    except (sql_parser.SqlNotUnderstood, _NotPlain):
        return None


class _NotPlain(Exception):
    """It has something that only Spark can judge."""


def _query(tree: exp.Expr, outer: Mapping[str, Shape]) -> Shape:
    from sqlglot import exp

    known = dict(outer)
    with_ = tree.args.get("with_") or tree.args.get("with")
    for cte in with_.expressions if with_ else ():
        known[cte.alias.lower()] = _query(cte.this, known)
    if isinstance(tree, exp.Subquery):
        return _query(tree.this, known)
    if isinstance(tree, exp.SetOperation):
        kind = type(tree).__name__.lower()
        shape = {"set": kind, "left": _query(tree.left, known), "right": _query(tree.right, known)}
        return {**shape, "distinct": bool(tree.args.get("distinct")), **_ends(tree)}
    if not isinstance(tree, exp.Select):
        raise _NotPlain
    if tree.args.get("laterals") or tree.args.get("pivots"):
        raise _NotPlain
    start = tree.args.get("from_") or tree.args.get("from")
    joins = tree.args.get("joins") or ()
    group = tree.args.get("group")
    return {
        "from": _input(start.this, known) if start else None,
        "joins": [_join(join, known) for join in joins],
        "where": _expression(tree.args["where"].this) if tree.args.get("where") else None,
        "subqueries": [_query(one, known) for one in _subqueries(tree)],
        "group": [_expression(one) for one in group.expressions] if group else None,
        "group_all": bool(group and group.args.get("all")),
        "sets": bool(group and any(group.args.get(key) for key in ("cube", "rollup", "grouping_sets"))),
        "select": [_selected(one) for one in tree.expressions],
        "aggregates": any(_own(tree, exp.AggFunc)),
        "over": any(_own(tree, exp.Window)),
        "generates": any(_own(tree, exp.UDTF)) or any(_own(tree, exp.Explode)),
        "distinct": tree.args.get("distinct") is not None,
        **_ends(tree),
    }


def _ends(tree: exp.Expr) -> Shape:
    return {
        "order": any(tree.args.get(key) is not None for key in ("order", "sort", "cluster")),
        "limit": tree.args.get("limit") is not None,
        "offset": tree.args.get("offset") is not None,
    }


def _own(tree: exp.Expr, kind: type[exp.Expr]) -> Iterator[bool]:
    """Is there such a part in the SELECT itself, and not in a subquery or a window?"""
    from sqlglot import exp

    for part in tree.expressions + [tree.args[key] for key in ("having", "order") if tree.args.get(key)]:
        for found in part.find_all(kind):
            if kind is exp.Window or found.find_ancestor(exp.Window, exp.Select) is tree:
                yield found.find_ancestor(exp.Select) is tree


def _subqueries(tree: exp.Expr) -> Iterator[exp.Expr]:
    """SELECTs used as a value or a condition."""
    from sqlglot import exp

    for found in tree.find_all(exp.Select):
        if found is tree or found.find_ancestor(exp.CTE, exp.From, exp.Join, exp.SetOperation):
            continue
        if found.parent_select is tree:
            yield found


def _input(table: exp.Expr, known: Mapping[str, Shape]) -> Shape:
    from sqlglot import exp

    alias = table.alias_or_name.lower()
    if table.args.get("sample"):
        return {"alias": alias, "sample": True, **_bare(table, known)}
    if table.args.get("pivots"):
        raise _NotPlain
    if isinstance(table, (exp.Table, exp.Subquery)):
        return {"alias": alias, **_bare(table, known)}
    raise _NotPlain


def _bare(table: exp.Expr, known: Mapping[str, Shape]) -> Shape:
    from sqlglot import exp

    if isinstance(table, exp.Subquery):
        return {"query": _query(table.this, known)}
    if isinstance(table.this, exp.Func):
        raise _NotPlain
    name = ".".join(part.name for part in table.parts)  # type: ignore[attr-defined]
    return {"query": known[name.lower()]} if name.lower() in known else {"table": name}


def _join(join: exp.Expr, known: Mapping[str, Shape]) -> Shape:
    side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    if join.args.get("method"):
        raise _NotPlain  # NATURAL: its columns are known to Spark alone
    on = join.args.get("on")
    return {
        "kind": _JOINS.get((side, kind), "other"),
        "input": _input(join.this, known),
        "on": _expression(on) if on else None,
        "using": [one.name.lower() for one in join.args.get("using") or ()],
    }


def _selected(item: exp.Expr) -> list[Any]:
    """A name and an expression; `*` and the alias before it, for all columns."""
    from sqlglot import exp

    if isinstance(item, exp.Star):
        return ["*", "", [one.name.lower() for one in _all_columns(item)]]
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return ["*", item.table.lower(), [one.name.lower() for one in _all_columns(item.this)]]
    name = item.alias or (item.name if isinstance(item, exp.Column) else "")
    return [name.lower(), _expression(item.unalias())]


def _all_columns(star: exp.Expr) -> Iterator[Any]:
    """The columns that `* EXCEPT (…)` leaves out."""
    for key in ("except_", "except", "replace"):
        yield from star.args.get(key) or ()


def _expression(tree: exp.Expr) -> list[Any]:
    """`["c", table, name]`, `["k", value]`, or `["f", name, is distinct, …]` with the arguments."""
    from sqlglot import exp

    if isinstance(tree, (exp.Paren, exp.Alias)):
        return _expression(tree.this)
    if isinstance(tree, (exp.Column, exp.Identifier)):
        return ["c", tree.text("table").lower(), tree.name.lower()]
    if isinstance(tree, (exp.Literal, exp.Interval, exp.Null, exp.Boolean)):
        return ["k", tree.sql() if isinstance(tree, exp.Interval) else tree.name]
    if isinstance(tree, exp.Between):
        this = _expression(tree.this)
        low, high = _expression(tree.args["low"]), _expression(tree.args["high"])
        return ["f", "and", False, ["f", ">=", False, this, low], ["f", "<=", False, this, high]]
    is_query = isinstance(tree, (exp.Select, exp.Subquery))
    arguments = [] if is_query else [_expression(one) for one in _arguments(tree)]
    distinct = isinstance(tree.args.get("this"), exp.Distinct)
    return ["f", _name(tree), distinct, *arguments]


def _arguments(tree: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    for value in tree.args.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Distinct):
                yield from one.expressions
            elif isinstance(one, exp.Expr) and not isinstance(one, exp.DataType):
                yield one


def _name(tree: exp.Expr) -> str:
    from sqlglot import exp

    kind = type(tree).__name__
    if kind in _CLOCKS:
        return "current_timestamp"
    if kind == "Window":
        return "over"
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(tree, exp.Anonymous):
        return "window" if tree.name.lower() == sql_parser.WINDOW else tree.name.lower()
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
