"""Expressions of Spark's plans in a form that is the same however they were written: traced, commuted, without ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

Json = Mapping[str, Any]
Scope = Mapping[int, str]
"""What the columns that an operator reads are made from, by Spark's id of each."""
# What a CASE is made of is among its children too.
_UNIMPORTANT = frozenset(
    {"class", "num-children", "exprId", "qualifier", "metadata", "resultId", "jvmId", "nonInheritableMetadataKeys",
     "explicitMetadata", "nullable", "timeZoneId", "evalContext", "evalMode", "failOnError", "func", "mode", "origin",
     "branches", "elseValue"}
)  # fmt: skip
_THROUGH = frozenset({"Alias", "KnownNullable", "KnownNotNull", "TempResolvedColumn", "PromotePrecision"})
"""Expressions that leave a value what it is."""
_COMMUTING = frozenset({"And", "Or", "Add", "Multiply", "EqualTo", "EqualNullSafe", "BitwiseAnd", "BitwiseOr"})
_RANDOM = frozenset({"Rand", "Randn", "Uuid", "Shuffle", "RandStr", "Uniform"})
"""Spark gives each of these a seed of its own, another one for each plan."""
_ANY_CASE = frozenset({"TruncTimestamp", "TruncDate"})
"""Functions that take the name of a unit: `HOUR` is `hour`."""
_FLIPPED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_INFIX = {
    "And": " AND ", "Or": " OR ", "Add": " + ", "Subtract": " - ", "Multiply": " * ", "Divide": " / ", "EqualTo": " = ",
    "LessThan": " < ", "LessThanOrEqual": " <= ", "Remainder": " % ",
}  # fmt: skip
_FUNCTIONS = {"Count": "count", "Sum": "sum", "Average": "avg", "Max": "max", "Min": "min", "First": "first",
              "Last": "last", "CollectList": "collect_list", "CollectSet": "collect_set"}  # fmt: skip
_UNITS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_LONGEST = 2_000
"""Longer texts are kept as their hash."""
_UDF = re.compile(r"PythonUDF\w*|\bname=\w+")


@dataclass(frozen=True)
class PlanExpression:
    """An expression and what it is made of."""

    name: str
    this: Json
    children: tuple[PlanExpression, ...] = ()

    def walk(self) -> Iterator[PlanExpression]:
        """It and all that is in it, itself first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def id(self) -> int | None:
        """Spark's id of a column."""
        given = self.this.get("exprId")
        return int(given["id"]) if isinstance(given, Mapping) else None


def is_expression(value: Any) -> bool:
    """Is a field of an operator an expression? Spark writes one as a list: each before what it is made of."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping) and "num-children" in value[0]


def expression_of(nodes: Sequence[Json]) -> PlanExpression:
    return _next(iter(nodes))


def short_name(class_name: str) -> str:
    return class_name.rpartition(".")[2].rstrip("$").rpartition("$")[2]


def _next(nodes: Iterator[Json]) -> PlanExpression:
    this = next(nodes)
    return PlanExpression(short_name(this["class"]), this, tuple(_next(nodes) for _ in range(this["num-children"])))


def traced(expression: PlanExpression, scope: Scope) -> str:
    """The expression over columns of sources, as text."""
    return _shortened(_Tracer(scope).text(expression))


def conjuncts(expression: PlanExpression) -> Iterator[PlanExpression]:
    """The parts that an AND joins."""
    if expression.name == "And":
        for child in expression.children:
            yield from conjuncts(child)
    else:
        yield expression


@dataclass(frozen=True)
class _Tracer:
    scope: Scope
    seen: dict[int, str] = field(default_factory=dict)
    variables: dict[int, str] = field(default_factory=dict)
    """The variables of lambdas, in the order in which they are met: Spark numbers their names through a session."""

    def text(self, expression: PlanExpression) -> str:
        if id(expression) not in self.seen:
            self.seen[id(expression)] = self._text(expression)
        return self.seen[id(expression)]

    def _text(self, expression: PlanExpression) -> str:  # noqa: PLR0911 - one for each shape
        name, this = expression.name, expression.this
        if name == "AttributeReference":
            return self.scope.get(expression.id or 0, str(this["name"]))
        if name in _THROUGH:
            return self.text(expression.children[0])
        if name == "Literal":
            return _literal(this)
        if name == "NamedLambdaVariable":
            return self.variables.setdefault(expression.id or 0, f"x{len(self.variables) + 1}")
        if name == "AggregateExpression":
            return self._aggregate(expression)
        if name == "GetStructField" and this.get("name"):
            return f"{self.text(expression.children[0])}.{this['name']}"
        if name == "CreateNamedStruct" and (window := self._window(expression)):
            return window
        return self._plain(expression)

    def _plain(self, expression: PlanExpression) -> str:
        name = expression.name
        parts = [self.text(child) for child in expression.children]
        if name in _FLIPPED:
            name, parts = _FLIPPED[name], parts[::-1]
        if name in _COMMUTING:
            parts = sorted(self._flat(expression, expression.name))
        elif name == "In":
            parts = [parts[0], *sorted(set(parts[1:]))]
        elif name == "If":
            name = "CaseWhen"
        elif name in _ANY_CASE:
            parts = [part.lower() if child.name == "Literal" else part
                     for part, child in zip(parts, expression.children, strict=True)]  # fmt: skip
        elif name in _RANDOM:
            return self._random(expression, parts)
        if name in _INFIX:
            return f"({_INFIX[name].join(parts)})"
        settings = [f"{key}={as_text(value)}" for key, value in _settings(expression)]
        shown = _FUNCTIONS.get(name, name)
        return f"{shown}({', '.join([*parts, *settings])})"

    def _random(self, expression: PlanExpression, parts: list[str]) -> str:
        """Without a seed that Spark has chosen."""
        hidden = expression.this.get("hideSeed")
        return f"{expression.name}({', '.join(parts[:-1] if hidden else parts)})"

    def _flat(self, expression: PlanExpression, name: str) -> Iterator[str]:
        """What an operator that commutes joins: `a + (b + c)` has three parts."""
        for child in expression.children:
            if child.name == name and name not in ("EqualTo", "EqualNullSafe"):
                yield from self._flat(child, name)
            else:
                yield self.text(child)

    def _aggregate(self, expression: PlanExpression) -> str:
        function, *condition = expression.children
        distinct = "DISTINCT " if expression.this.get("isDistinct") else ""
        where = f" FILTER ({self.text(condition[0])})" if condition else ""
        return f"{distinct}{self.text(function)}{where}"

    def _window(self, expression: PlanExpression) -> str | None:
        """`window(at, …)`: Spark writes the start and the end of a window out as long sums."""
        times = [one for one in expression.walk() if one.name == "PreciseTimestampConversion"]
        if len(expression.children) != 4 or not times:
            return None
        columns = {self.text(one) for time in times for one in time.walk() if one.name == "AttributeReference"}
        rest = _shortened(self._plain(expression))
        lengths = dict.fromkeys(
            _length(one.this) for one in expression.walk() if one.name == "Literal" and _is_number(one.this)
        )
        return f"window({', '.join([*sorted(columns), *lengths])} #{digest(rest)[:8]})"


def with_constants_hidden(plan: Any, hide: Callable[[str], str]) -> Any:
    """A plan whose constants are what `hide` makes of them."""
    if isinstance(plan, Mapping):
        if short_name(str(plan.get("class", ""))) == "Literal" and isinstance(plan.get("value"), str):
            return {**plan, "value": hide(plan["value"])}
        return {key: with_constants_hidden(value, hide) for key, value in plan.items()}
    return [with_constants_hidden(one, hide) for one in plan] if isinstance(plan, list) else plan


def without_clock(plan: Any, later: Any, today: str) -> Any:
    """A plan whose constants for the present time read `now` and `today`. `later` is the same, planned a bit later."""
    if isinstance(plan, Mapping):
        if short_name(str(plan.get("class", ""))) == "Literal":
            if plan.get("value") != (later.get("value") if isinstance(later, Mapping) else None):
                return {**plan, "value": "now"}
            return {**plan, "value": "today"} if plan.get("dataType") == "date" and plan["value"] == today else plan
        inside = later if isinstance(later, Mapping) else {}
        return {key: without_clock(value, inside.get(key), today) for key, value in plan.items()}
    if isinstance(plan, list):
        others = later if isinstance(later, list) and len(later) == len(plan) else plan
        return [without_clock(one, other, today) for one, other in zip(plan, others, strict=True)]
    return plan


def _is_number(this: Json) -> bool:
    return isinstance(this.get("dataType"), str) and this["dataType"] in ("long", "interval") and this["value"] != "0"


def _length(this: Json) -> str:
    """How long a window is, in words: Spark counts microseconds."""
    value = str(this["value"])
    if this["dataType"] != "long":
        return value
    microseconds = abs(int(value))
    for unit, size in _UNITS.items():
        if microseconds % size == 0:
            count = microseconds // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{microseconds} microseconds"


def _settings(expression: PlanExpression) -> Iterator[tuple[str, Any]]:
    """What an expression is set to, beside what it is made of: numbers that count its parts are left out."""
    numbers = range(len(expression.children))
    for key, value in expression.this.items():
        points = isinstance(value, int) and not isinstance(value, bool) and value in numbers and key != "ordinal"
        listed = isinstance(value, list) and all(isinstance(one, int) and one in numbers for one in value)
        if key not in _UNIMPORTANT and value is not None and not points and not listed:
            yield key, value


def as_text(value: Any) -> str:
    """A setting as text; plans inside an expression without the ids of their columns."""
    if isinstance(value, Mapping):
        inner = {key: one for key, one in value.items() if key not in _UNIMPORTANT}
        return "{" + ", ".join(f"{key}: {as_text(one)}" for key, one in sorted(inner.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_text(one) for one in value) + "]"
    return str(value)


def _literal(this: Json) -> str:
    value, kind = this.get("value"), this.get("dataType")
    if value is None:
        return "NULL"
    if kind == "string":
        return repr(value)
    if kind == "binary":
        return "binary"  # Spark writes the address of the bytes, not the bytes
    if isinstance(kind, str) and kind.startswith("interval"):
        # `INTERVAL 10 minutes` and `INTERVAL 600 seconds` are one value of two types.
        return f"{value}:{'interval months' if 'month' in kind or 'year' in kind else 'interval'}"
    return str(value) if kind in ("integer", "boolean") else f"{value}:{as_text(kind)}"


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    names = " ".join(dict.fromkeys(_UDF.findall(text)))  # a change in their code is looked up by these
    return f"{text[:200]}… {names} #{digest(text)}"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
