"""A SELECT as operators, from its text alone: the facts that Spark's plan gives too, as far as SQL tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.facts.operators import Column, Expression, Operator, OperatorKind
from penstock.facts.streams import marks
from penstock.transforms.sql_shape import Shape, shape_of


def plan_of_sql(sql: str, node: str, inputs: Mapping[str, Operator]) -> Operator | None:
    """The operators of a step's SELECT over those of its inputs; None where only Spark can tell."""
    shape = shape_of(sql)
    if shape is None:
        return None
    by_name = {name.lower(): operator for name, operator in inputs.items()}
    try:
        return _PlanReader(node, by_name).query(shape)
    except KeyError:
        return None  # a table that is no input: another rule tells


class _PlanReader:
    """Reads the shapes of one step."""

    def __init__(self, node: str, inputs: Mapping[str, Operator]) -> None:
        self._node, self._inputs = node, inputs
        self._scopes = 0

    def query(self, shape: Shape) -> Operator:
        if "set" in shape:
            sides = (self.query(shape["left"]), self.query(shape["right"]))
            made = self._made(shape["set"], sides)
            # EXCEPT and INTERSECT take duplicates out as they are; UNION groups them.
            if shape["distinct"] and shape["set"] == "union":
                made = self._made("distinct", (made,))
            return self._ends(made, shape)
        made = self._input(shape["from"]) if shape["from"] else self._made("source", ())
        for join in shape["joins"]:
            made = self._join(made, join)
        subqueries = tuple(self.query(one) for one in shape["subqueries"])
        if shape["where"] or subqueries:
            condition = self._expression(shape["where"], made) if shape["where"] else None
            made = self._made("filter", (made,), condition=condition, subqueries=subqueries)
        selected = self._selected(shape, made)
        if shape["group"] is not None or shape["aggregates"]:
            keys = tuple(self._keys(shape, made, selected))
            columns = tuple(_of_group(column, keys) for column in selected)
            made = self._made("aggregate", (made,), keys=keys, columns=columns)
        else:
            if shape["over"]:
                made = self._made("window_function", (made,))
            if shape["generates"]:
                made = self._made("other", (made,), name="Generate")
            made = self._made("project", (made,), columns=selected)
        return self._ends(self._made("distinct", (made,)) if shape["distinct"] else made, shape)

    def _ends(self, made: Operator, shape: Shape) -> Operator:
        if shape["order"]:
            made = self._made("sort", (made,))
        if shape["offset"]:
            made = self._made("offset", (made,))
        return self._made("limit", (made,)) if shape["limit"] else made

    def _input(self, shape: Shape) -> Operator:
        """An input under its alias: its columns get names of their own, so that a table can be joined with itself."""
        made = self.query(shape["query"]) if "query" in shape else self._inputs[shape["table"].lower()]
        self._scopes += 1
        scope = f"{shape['alias']}@{self._scopes}"
        found = marks(made)
        columns = tuple(
            Column(f"{scope}.{_bare(name)}", Expression(name, "column"))
            for name in sorted(found.event_time | found.sessions)
        )
        if shape.get("sample"):
            made = self._made("sample", (made,))
        return self._made("project", (made,), columns=columns)

    def _join(self, left: Operator, shape: Shape) -> Operator:
        right = self._input(shape["input"])
        inputs = (left, right)
        both = self._made("join", inputs)
        on = [self._expression(shape["on"], both)] if shape["on"] else []
        on += [_function("=", self._column("", name, left), self._column("", name, right)) for name in shape["using"]]
        condition = on[0] if len(on) == 1 else _function("and", *on) if on else None
        return self._made("join", inputs, condition=condition, join=shape["kind"])

    def _selected(self, shape: Shape, made: Operator) -> tuple[Column, ...]:
        columns: dict[str, Column] = {}
        for name, expression, *rest in shape["select"]:
            if name == "*":
                for id_ in sorted(marks(made).event_time | marks(made).sessions):
                    if (not expression or _alias(id_) == expression) and _bare(id_) not in rest[0]:
                        columns[_bare(id_)] = Column(_bare(id_), Expression(id_, "column"))
            else:
                made_of = self._expression(expression, made)
                known_as = name or (made_of.name if made_of.name == "window" else f"_{len(columns)}")
                columns[known_as] = Column(known_as, made_of)
        return tuple(columns.values())

    def _keys(self, shape: Shape, made: Operator, selected: tuple[Column, ...]) -> list[Expression]:
        if shape["group_all"]:
            return [column.made_of for column in selected if not _aggregates(column.made_of)]
        keys = []
        for written in shape["group"] or ():
            key = self._expression(written, made)
            if key.kind == "constant" and (key.value or "").isdigit() and 0 < int(key.value or 0) <= len(selected):
                key = selected[int(key.value or 0) - 1].made_of
            elif key.kind == "column" and "?" in key.name:
                by_alias = [column.made_of for column in selected if column.id == _bare(key.name)]
                # Spark looks for a column first: an alias that is made of one of its own name does not hide it.
                hides = by_alias and not any(_bare(one.name) == _bare(key.name) for one in by_alias[0].walk())
                key = by_alias[0] if hides else key
            keys.append(key)
        return keys

    def _expression(self, written: list[Any], made: Operator) -> Expression:
        match written:
            case ["c", table, name]:
                return self._column(table, name, made)
            case ["k", value]:
                return Expression("", "constant", value=str(value))
            case ["f", name, distinct, *arguments]:
                parts = tuple(self._expression(one, made) for one in arguments)
                return Expression(name, arguments=parts, distinct=bool(distinct))
        raise KeyError(written)

    def _column(self, table: str, name: str, made: Operator) -> Expression:
        found = marks(made)
        for id_ in sorted(found.event_time | found.sessions):
            if _bare(id_) == name and (not table or _alias(id_) == table):
                return Expression(id_, "column")
        return Expression(f"?{table}.{name}", "column")

    def _made(self, kind: OperatorKind, inputs: tuple[Operator, ...], **what: Any) -> Operator:
        return Operator(kind, self._node, inputs, **what)


def _of_group(column: Column, keys: tuple[Expression, ...]) -> Column:
    """`window` in a SELECT that groups by one is that window."""
    if column.made_of.name in ("?.window", "?.session_window"):
        for key in keys:
            if key.name == _bare(column.made_of.name):
                return Column(column.id, key)
    return column


def _aggregates(expression: Expression) -> bool:
    return any(part.name in ("count", "sum", "min", "max", "avg") for part in expression.walk())


def _function(name: str, *arguments: Expression) -> Expression:
    return Expression(name, arguments=arguments)


def _bare(id_: str) -> str:
    return id_.rpartition(".")[2]


def _alias(id_: str) -> str:
    return id_.rpartition(".")[0].partition("@")[0]
