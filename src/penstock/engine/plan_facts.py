"""Spark's analysed plan as facts: one call of the JVM, then plain Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock import spark_internals
from penstock.facts.operators import Column, Expression, JoinKind, Operator, OperatorKind, TimeMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS: dict[str, OperatorKind] = {
    "EventTimeWatermark": "watermark",
    "UpdateEventTimeWatermarkColumn": "watermark",
    "Project": "project",
    "Filter": "filter",
    "Aggregate": "aggregate",
    "Distinct": "distinct",
    "Join": "join",
    "Deduplicate": "deduplicate",
    "DeduplicateWithinWatermark": "deduplicate_within_watermark",
    "TransformWithState": "process",
    "TransformWithStateInPySpark": "process",
    "FlatMapGroupsInPandasWithState": "pandas_state",
    "GlobalLimit": "limit",
    "LocalLimit": "limit",
    "Offset": "offset",
    "Sort": "sort",
    "Sample": "sample",
    "Window": "window_function",
    "Union": "union",
    "Except": "except",
    "Intersect": "intersect",
}
_JOINS: dict[str, JoinKind] = {
    "Inner": "inner",
    "Cross": "inner",
    "LeftOuter": "left_outer",
    "RightOuter": "right_outer",
    "FullOuter": "full_outer",
    "LeftSemi": "left_semi",
    "LeftAnti": "left_anti",
}
_TIMES: dict[str, TimeMode] = {
    "ProcessingTime": "processing_time",
    "ProcessingTimeTimeout": "processing_time",
    "EventTime": "event_time",
    "EventTimeTimeout": "event_time",
}
_FUNCTIONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "And": "and",
    "Add": "+",
    "Subtract": "-",
    "UnaryMinus": "-",
    "TimestampAddInterval": "+",
    "TimeAdd": "+",
    "PythonUDF": "python",
    "MonotonicallyIncreasingID": "monotonically_increasing_id",
    "CurrentTimestamp": "current_timestamp",
    "Now": "current_timestamp",
    "LocalTimestamp": "current_timestamp",
    "CurrentBatchTimestamp": "current_timestamp",
    "CurrentDate": "current_date",
}
_LISTS = ("projectList", "aggregateExpressions")
_KEYS = ("groupingExpressions", "keys", "groupingAttributes", "eventTime")
_THROUGH = ("SubqueryAlias", "View")
"""Names around an operator, and no operators."""
_WRAPPERS = ("KnownNullable", "DatetimeSub", "PromotePrecision", "TempResolvedColumn")
"""Expressions that leave a column what it is, for our purposes."""

_STATEFUL_NAMES = (
    "EventTimeWatermark",
    "StateStore",
    "SessionWindowStateStore",
    "StreamingDeduplicate",
    "StreamingGlobalLimit",
    "StreamingSymmetricHashJoin",
    "TransformWithState",
    "FlatMapGroupsInPandasWithState",
)

_Json = Mapping[str, Any]


def plan_of_rows(rows: DataFrame, node: str, nodes: Sequence[str]) -> Operator:
    """The operators that make these rows of `node`; `nodes` are the names of all sources and steps."""
    return operators(json.loads(spark_internals.analyzed_json(rows)), node, nodes)


def explained(rows: DataFrame) -> tuple[str, tuple[str, ...]]:
    """Spark's plans as it prints them, and the operators with state that it put into the last one."""
    text = spark_internals.explained(rows)
    physical = text.partition("== Physical Plan ==")[2]
    names = (re.sub(r"^[\s:+*|()\d-]*", "", line).split(" ")[0] for line in physical.splitlines())
    return text.strip(), tuple(name for name in names if name.startswith(_STATEFUL_NAMES))


def operators(plan: Sequence[_Json], node: str, nodes: Sequence[str]) -> Operator:
    """The tree of a plan, which Spark writes as a list: each operator before its inputs."""
    return _operator(iter(plan), node, frozenset(nodes), {})


def _operator(plan: Iterator[_Json], node: str, nodes: frozenset[str], shared: dict[int, Operator]) -> Operator:
    """The next operator; `shared` gets the queries of a WITH, which stand before what uses them."""
    this = next(plan)
    name = _short(this["class"])
    if name in _THROUGH:
        inside = _alias(this) or node
        return _operator(plan, inside if inside in nodes else node, nodes, shared)
    inputs = tuple(_operator(plan, node, nodes, shared) for _ in range(this["num-children"]))
    if name == "CTERelationDef":
        shared[this["id"]] = inputs[0]
    if name == "WithCTE":
        return inputs[-1]
    if name == "CTERelationRef" and this["cteId"] in shared:
        return _renamed(shared[this["cteId"]], this, node)
    kind = _KINDS.get(name, "source" if not inputs else "other")
    return Operator(
        kind=kind,
        node=node,
        inputs=inputs,
        streams=not inputs and (name.startswith("Streaming") or this.get("isStreaming") is True),
        name=name,
        keys=tuple(_keys(this, kind, inputs)),
        columns=_columns(this, kind),
        condition=_expression(this["condition"]) if this.get("condition") else None,
        join=_JOINS.get(_object(this.get("joinType")), "other") if kind == "join" else "inner",
        mode=_object(this.get("outputMode")).lower() or None,
        time=_TIMES.get(_object(this.get("timeMode") or this.get("timeout")), "none"),
    )


def _renamed(operator: Operator, reference: _Json, node: str) -> Operator:
    """A query of a WITH where it is used: the same columns under ids of their own."""
    given = [_expression(attribute) for attribute in reference["output"]]
    columns = tuple(
        Column(new.name, Expression(old, "column")) for new, old in zip(given, _ids(operator), strict=False)
    )
    return Operator("project", node, (operator,), name="CTERelationRef", columns=columns)


def _ids(operator: Operator) -> list[str]:
    """The ids of what an operator gives, as far as the plan tells."""
    if operator.columns is not None:
        return [column.id for column in operator.columns]
    return [one for below in operator.inputs for one in _ids(below)]


def _keys(this: _Json, kind: OperatorKind, inputs: tuple[Operator, ...]) -> Iterator[Expression]:
    for field in _KEYS:
        found = this.get(field) or ()
        if found and isinstance(found[0], dict):
            found = [found]
        yield from map(_expression, found)
    if kind == "process" and inputs and inputs[0].columns:
        # Spark puts the grouping columns first, and says how many there are.
        for column in inputs[0].columns[: this.get("groupingAttributesLen") or 0]:
            yield Expression(column.id, "column")


def _columns(this: _Json, kind: OperatorKind) -> tuple[Column, ...] | None:
    for field in _LISTS:
        if kind in ("project", "aggregate") and field in this:
            return tuple(_column(expression) for expression in this[field])
    if _short(this["class"]) == "Expand":
        return tuple(map(_expanded, this["output"], this["projections"][0]))
    if kind in ("process", "pandas_state"):
        return tuple(_column(expression) for expression in this.get("outputAttrs") or ())
    return None


def _column(expression: Sequence[_Json]) -> Column:
    first = expression[0]
    if _short(first["class"]) == "Alias":
        return Column(_id(first), _marked(first, _expression(expression[1:])))
    made_of = _expression(expression)
    return Column(made_of.name, made_of)


def _expanded(attribute: Sequence[_Json], first: Sequence[_Json]) -> Column:
    """A column of several copies of each row, as a sliding window makes them."""
    return Column(_id(attribute[0]), _marked({**attribute[0], "explicitMetadata": {}}, _expression(first)))


def _marked(alias: _Json, made_of: Expression) -> Expression:
    """Windows are arithmetic in a plan; what they were written as shows in their name and in what Spark notes there."""
    parts = {part.name for part in made_of.walk()}
    if "precisetimestampconversion" not in parts or alias.get("explicitMetadata") is None:
        return made_of
    name = "window_time" if alias["name"].startswith("window_time(") else alias["name"]
    return Expression(name, arguments=(made_of,)) if name in ("window", "session_window", "window_time") else made_of


def _expression(written: Sequence[_Json]) -> Expression:
    return _next(iter(written))


def _next(written: Iterator[_Json]) -> Expression:
    this = next(written)
    name = _short(this["class"])
    if name == "AttributeReference":
        return Expression(_id(this), "column")
    if name == "Literal":
        return Expression("", "constant", value=str(this.get("value")))
    arguments = tuple(_next(written) for _ in range(this["num-children"]))
    if name == "With":
        # Its last children are values that its first one uses by reference.
        return _filled(arguments[0], arguments[1])
    if name in (*_WRAPPERS, "CommonExpressionDef", "Alias", "Between") and arguments:
        return arguments[0]
    if name == "AggregateExpression":
        inner = arguments[0]
        return Expression(inner.name, arguments=(*inner.arguments, *arguments[1:]), distinct=bool(this["isDistinct"]))
    return Expression(_FUNCTIONS.get(name, name.lower()), arguments=arguments)


def _filled(expression: Expression, shared: Expression) -> Expression:
    if expression.name == "commonexpressionref":
        return shared
    return Expression(
        expression.name,
        expression.kind,
        tuple(_filled(argument, shared) for argument in expression.arguments),
        expression.distinct,
        expression.value,
    )


def _alias(this: _Json) -> str | None:
    identifier = this.get("identifier") or {}
    return identifier.get("name") if isinstance(identifier, dict) else None


def _id(this: _Json) -> str:
    return f"{this['name']}#{this['exprId']['id']}"


def _object(value: Any) -> str:
    """The name of a Scala object: `LeftOuter` of `org.apache…plans.LeftOuter$`."""
    if not isinstance(value, dict):
        return ""
    return _short((value.get("object") or value.get("product-class") or "").rstrip("$")).rpartition("$")[2]


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2].rstrip("$")
