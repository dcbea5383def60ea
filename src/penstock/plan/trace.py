"""Spark's plan of a query → what it keeps and gives. Pure: it reads the JSON that Spark writes of a plan.

State is laid out after columns are pruned, so the optimised plan is read. Spark numbers the sources in the order of the
analysed plan, so that one is read too. In both, each source is a stand-in whose columns are those that it hands on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.facts.signature import OutputColumn, StateKind, StateOperator, WatermarkOn
from penstock.plan.expressions import (
    Json,
    PlanExpression,
    as_text,
    conjuncts,
    expression_of,
    is_expression,
    short_name,
    traced,
)

Columns = tuple[tuple[int, str], ...]
"""What an operator gives: Spark's id of each column, and what it is made from. In order."""
SourceOf = Callable[[Json], str | None]
"""Which source a leaf of the plan stands for; None for rows of a table that is not one."""
_DEDUPLICATE: dict[str, StateKind] = {
    "Deduplicate": "deduplicate",
    "DeduplicateWithinWatermark": "deduplicate_within_watermark",
}
_PROCESS: dict[str, StateKind] = {
    "TransformWithState": "process",
    "TransformWithStateInPySpark": "process",
    "FlatMapGroupsInPandasWithState": "pandas_state",
}
_WATERMARKS = ("EventTimeWatermark", "UpdateEventTimeWatermarkColumn")
_PYTHON_ROWS = frozenset({"MapInPandas", "MapInArrow", "PythonMapInArrow", "FlatMapGroupsInPandas",
                          "FlatMapGroupsInArrow", *_PROCESS})  # fmt: skip
"""Operators whose rows are made by the user's Python."""
_ONE_SIDE = ("LeftSemi", "LeftAnti")
_OUTPUTS = ("output", "outputAttrs", "outAttributes")
"""Where an operator lists columns that it makes."""


@dataclass
class Traced:
    """What a plan keeps and gives."""

    operators: list[StateOperator] = field(default_factory=list)
    watermarks: list[WatermarkOn] = field(default_factory=list)
    filters: list[str] = field(default_factory=list)
    output: tuple[OutputColumn, ...] = ()
    types: dict[str, str] = field(default_factory=dict)
    """By column of a source, its type."""
    unknown: list[str] = field(default_factory=list)
    """Operators whose columns could not be followed."""


@dataclass(frozen=True)
class _Given:
    """What an operator gives to the one above."""

    columns: Columns
    streams: bool
    rows: str = ""
    """What makes its rows more or fewer than those of its sources, filters apart: unions, explosions, static joins."""

    @property
    def scope(self) -> dict[int, str]:
        return dict(self.columns)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.columns)


@dataclass(frozen=True)
class PlanTexts:
    """What Spark writes of the plan of one query."""

    analysed: Sequence[Json]
    optimised: Sequence[Json]
    delays: Sequence[str]
    """Of each watermark, in the order of the optimised plan."""
    columns: Sequence[tuple[int, str, str]]
    """Of each column that it gives: Spark's id, its name and its type."""


def trace(plan: PlanTexts, source_of: SourceOf) -> Traced:
    """What the optimised plan keeps and gives."""
    tracer = _Trace(source_of)
    given = tracer.walk(iter(plan.optimised)).scope
    found = tracer.found
    found.output = tuple(OutputColumn(name, type_, given.get(id_, name)) for id_, name, type_ in plan.columns)
    if len(plan.delays) == len(found.watermarks):
        order = sorted(range(len(plan.delays)), key=lambda number: tracer.watermark_nodes[number])
        for number, delay in zip(order, plan.delays, strict=True):
            found.watermarks[number] = WatermarkOn(found.watermarks[number].column, delay)
    found.filters.sort()
    return found


def sources_in(analysed: Sequence[Json], source_of: SourceOf) -> tuple[str, ...]:
    """The streams of a plan in the order in which Spark numbers them. A relation that is there twice counts once."""
    found: dict[str, str] = {}
    for node in analysed:
        if node["num-children"] == 0 and "Streaming" in short_name(node["class"]):
            ids = ",".join(str(one.id) for one in _expressions(node.get("output")))
            found.setdefault(f"{source_of(node)}:{ids}", source_of(node) or "")
    return tuple(found.values())


class _Trace:
    def __init__(self, source_of: SourceOf) -> None:
        self._source_of = source_of
        self.found = Traced()
        self.watermark_nodes: list[int] = []
        """Which node of the plan each watermark is, counted from the top."""
        self._shared: dict[Any, _Given] = {}
        self._names: dict[int, str] = {}
        """The names of columns by Spark's ids."""
        self._count = 0

    def walk(self, nodes: Iterator[Json]) -> _Given:
        this = next(nodes)
        number, self._count = self._count, self._count + 1
        name = short_name(this["class"])
        inputs = [self.walk(nodes) for _ in range(this["num-children"])]
        streams = any(one.streams for one in inputs)
        if not inputs:
            return self._leaf(name, this)
        if name == "CTERelationDef":
            self._shared[this["id"]] = inputs[0]
        below = {id_: text for one in inputs for id_, text in one.columns}
        columns = self._columns(name, this, inputs, below)
        for key in ("projectList", "aggregateExpressions", *_OUTPUTS):
            self._names |= {one.id or 0: str(one.this.get("name")) for one in _expressions(this.get(key))}
        self._note(name, this, inputs, below)
        if name in _WATERMARKS:
            self.watermark_nodes.append(number)
        return _Given(columns, streams, self._rows(name, this, inputs, below))

    def _rows(self, name: str, this: Json, inputs: list[_Given], below: Mapping[int, str]) -> str:  # noqa: PLR0911
        if name == "Generate":
            outer = "outer " if this.get("outer") else ""
            return f"{outer}{traced(expression_of(this['generator']), below)} {inputs[0].rows}".rstrip()
        if name == "Expand":
            return f"Expand({len(this.get('projections') or ())}) {inputs[0].rows}".rstrip()
        if name == "Union":
            inside = [one.rows for one in inputs if one.rows]
            return f"union of {len(inputs)}{' (' + ' | '.join(inside) + ')' if inside else ''}"
        if name in ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark") and inputs[0].streams:
            return ""  # what it reads is its own affair
        if name == "Join":
            found = [one.rows for one in inputs if one.rows]
            if not all(one.streams for one in inputs) and _object(this.get("joinType")) not in _ONE_SIDE:
                found.append(f"{_object(this.get('joinType'))} JOIN ON {self._condition(this, below)}")
            return " ".join(found)
        if name in _PYTHON_ROWS:
            return f"{name} PythonUDF {inputs[0].rows}".rstrip()
        return inputs[0].rows

    @staticmethod
    def _condition(this: Json, below: Mapping[int, str]) -> str:
        parts = conjuncts(expression_of(this["condition"])) if this.get("condition") else ()
        return " AND ".join(sorted(traced(one, below) for one in parts if one.name != "IsNotNull"))

    def _leaf(self, name: str, this: Json) -> _Given:
        if name == "CTERelationRef" and this.get("cteId") in self._shared:
            shared = self._shared[this["cteId"]]
            ids = [one.id or 0 for one in _expressions(this.get("output"))]
            return _Given(tuple(zip(ids, shared.texts, strict=False)), shared.streams, shared.rows)
        streams = name.startswith("Streaming") or this.get("isStreaming") is True
        source = self._source_of(this) or name
        given = _expressions(this.get("output"))
        self._names |= {one.id or 0: str(one.this["name"]) for one in given}
        for one in given:
            self.found.types |= dict(_types(f"{source}.{one.this['name']}", one.this["dataType"]))
        return _Given(tuple((one.id or 0, f"{source}.{one.this['name']}") for one in given), streams)

    def _columns(self, name: str, this: Json, inputs: list[_Given], below: Mapping[int, str]) -> Columns:  # noqa: PLR0911
        match name:
            case "Project" | "Aggregate":
                listed = _expressions(this["projectList" if name == "Project" else "aggregateExpressions"])
                return tuple((one.id or 0, traced(one, below)) for one in listed)
            case "Join":
                sides = inputs[:1] if _object(this.get("joinType")) in _ONE_SIDE else inputs
                return tuple(column for side in self._looked_up(this, sides, below) for column in side.columns)
            case "Union":
                ids = [id_ for id_, _ in inputs[0].columns]
                texts = zip(*(one.texts for one in inputs), strict=False)
                return tuple((id_, _of_union(one)) for id_, one in zip(ids, texts, strict=False))
            case "Expand":
                rows = [_expressions(row) for row in this["projections"] or ()]
                columns = zip(*([traced(one, below) for one in row] for row in rows), strict=False)
                output = _expressions(this["output"])
                return tuple((one.id or 0, _of_union(texts)) for one, texts in zip(output, columns, strict=False))
            case "Generate":
                made = traced(expression_of(this["generator"]), below)
                given = _expressions(this["generatorOutput"])
                left_out = set(this.get("unrequiredChildIndex") or ())
                kept = [column for number, column in enumerate(inputs[0].columns) if number not in left_out]
                return (*kept, *((one.id or 0, f"{made}.{number}") for number, one in enumerate(given)))
            case "BatchEvalPython" | "ArrowEvalPython":
                made_by = [traced(one, below) for one in _expressions(this["udfs"])]
                results = [one.id or 0 for one in _expressions(this["resultAttrs"])]
                return (*inputs[0].columns, *zip(results, made_by, strict=False))
            case "WithCTE":
                return inputs[-1].columns
        own = next((this[key] for key in _OUTPUTS if is_listed(this.get(key))), None)
        if own is not None:
            source = ", ".join(dict.fromkeys(text for one in inputs for text in one.texts))
            by = "PythonUDF " if name in _PYTHON_ROWS else ""  # code of the user makes its rows
            return tuple((one.id or 0, f"{by}{name}({source}).{one.this['name']}") for one in _expressions(own))
        if len(inputs) > 1:
            self.found.unknown.append(name)
        return tuple(column for one in inputs for column in one.columns)

    def _looked_up(self, this: Json, sides: list[_Given], below: Mapping[int, str]) -> Iterator[_Given]:
        """The sides of a join. What a table gives to a stream depends on how its rows are found."""
        mixed = len({one.streams for one in sides}) > 1
        found_by = f" ON {self._condition(this, below)}" if mixed else ""
        for one in sides:
            yield (
                one
                if one.streams or not mixed
                else _Given(tuple((id_, f"lookup({text}{found_by})") for id_, text in one.columns), one.streams)
            )

    def _note(self, name: str, this: Json, inputs: list[_Given], below: Mapping[int, str]) -> None:
        """Writes down what an operator keeps, or demands of its rows."""
        streams = [one.streams for one in inputs]
        if name == "Filter":
            for one in conjuncts(expression_of(this["condition"])):
                if one.name != "IsNotNull":  # Spark adds these by itself
                    self.found.filters.append(traced(one, below))
        elif name in _WATERMARKS:
            self.found.watermarks.append(WatermarkOn(traced(expression_of(this["eventTime"]), below), ""))
        elif name == "Aggregate" and streams[0]:
            self.found.operators.append(replace(_aggregation(this, below), rows=inputs[0].rows))
        elif name in _DEDUPLICATE and streams[0]:
            keys = tuple(traced(one, below) for one in _expressions(this["keys"]))
            self.found.operators.append(StateOperator(_DEDUPLICATE[name], keys))
        elif name == "Sample":
            self.found.filters.append(f"sample({this.get('lowerBound')}, {this.get('upperBound')})")
        elif name == "Join" and _object(this.get("joinType")) in _ONE_SIDE and not all(streams):
            self.found.filters.append(f"{_object(this.get('joinType'))} {self._condition(this, below)}")
        elif name == "GlobalLimit" and streams[0]:
            self.found.operators.append(StateOperator("limit", detail=traced(expression_of(this["limitExpr"]), below)))
        elif name == "Join" and all(streams):
            rows = " | ".join(one.rows for one in inputs) if any(one.rows for one in inputs) else ""
            self.found.operators.append(replace(_join(this, inputs, below), rows=rows))
        elif name in _PROCESS and streams[0]:
            first = this.get("groupingAttributesLen") or 0  # of `process`: the keys come first
            keys = tuple(traced(one, below) for one in _expressions(this.get("groupingAttributes")))
            keys = keys or inputs[0].texts[:first]
            read = tuple(f"{self._names.get(id_, '')}={text}" for id_, text in inputs[0].columns[first:])
            kept = this.get("stateType")  # of `pandas_state`: a tuple, whose order is all that its code sees
            state = tuple(f"{one['name']} {as_text(one['type'])}" for one in kept["fields"]) if kept else ()
            # Spark itself holds a processor to its output mode.
            settings = ("timeMode", "outputMode") if first else ("timeout",)
            detail = " ".join(filter(None, (_object(this.get(key)) for key in settings)))
            self.found.operators.append(StateOperator(_PROCESS[name], keys, state, (read,), detail,
                                                      rows=inputs[0].rows))  # fmt: skip


def _aggregation(this: Json, below: Mapping[int, str]) -> StateOperator:
    keys = tuple(traced(one, below) for one in _expressions(this["groupingExpressions"]))
    # Spark keeps one buffer for functions that are the same over the same columns, by their ids.
    functions = {
        traced(inner, _Ids()): traced(inner, below)
        for one in _expressions(this["aggregateExpressions"])
        for inner in one.walk()
        if inner.name == "AggregateExpression"
    }
    names = [one.this.get("name") for one in _expressions(this["groupingExpressions"])]
    return StateOperator("session" if "session_window" in names else "aggregate", keys, tuple(functions.values()))


def _join(this: Json, inputs: list[_Given], below: Mapping[int, str]) -> StateOperator:
    """Rows are found by the equalities between both sides, in the order of the condition."""
    left, right = ({id_ for id_, _ in one.columns} for one in inputs)
    keys, rest = [], []
    for one in conjuncts(expression_of(this["condition"])) if this.get("condition") else ():
        sides = [{inner.id for inner in child.walk() if inner.name == "AttributeReference"} for child in one.children]
        if one.name in ("EqualTo", "EqualNullSafe") and all(sides):
            first, second = one.children
            if sides[0] <= right and sides[1] <= left:
                first, second, sides = second, first, sides[::-1]
            if sides[0] <= left and sides[1] <= right:
                equals = "=" if one.name == "EqualTo" else "<=>"
                keys.append(f"{traced(first, below)} {equals} {traced(second, below)}")
                continue
        if one.name != "IsNotNull":
            rest.append(traced(one, below))
    stored = tuple(one.texts for one in inputs)
    kind = _object(this.get("joinType"))
    return StateOperator("join", tuple(keys), stored=stored, detail=kind, condition=" AND ".join(sorted(rest)))


class _Ids(dict[int, str]):
    """Columns by their ids alone."""

    def get(self, key: int, default: Any = None) -> str:
        return f"#{key}"


def _types(column: str, kind: Any) -> Iterator[tuple[str, str]]:
    """The type of a column, and those of the fields in it."""
    yield column, as_text(kind)
    if isinstance(kind, Mapping) and kind.get("type") == "struct":
        for one in kind["fields"]:
            yield from _types(f"{column}.{one['name']}", one["type"])


def _of_union(texts: Sequence[str]) -> str:
    """A column of a union: what each branch gives, or one text where all give the same."""
    return texts[0] if len(set(texts)) == 1 else f"union({' | '.join(texts)})"


def is_listed(value: Any) -> bool:
    """Is a field a list of expressions?"""
    return isinstance(value, list) and bool(value) and is_expression(value[0])


def _expressions(value: Any) -> list[PlanExpression]:
    return [expression_of(one) for one in value] if is_listed(value) else []


def _object(value: Any) -> str:
    """The name of a Scala object: `LeftOuter` of `org.apache…plans.LeftOuter$`."""
    if not isinstance(value, Mapping):
        return ""
    return short_name(str(value.get("object") or value.get("product-class") or ""))
