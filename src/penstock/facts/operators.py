"""What a query is made of: operators and expressions, as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

OperatorKind = Literal[
    "source",
    "watermark",
    "project",
    "filter",
    "aggregate",
    "distinct",
    "join",
    "deduplicate",
    "deduplicate_within_watermark",
    "process",
    "pandas_state",
    "limit",
    "offset",
    "sort",
    "sample",
    "window_function",
    "union",
    "except",
    "intersect",
    "other",
]
JoinKind = Literal["inner", "left_outer", "right_outer", "full_outer", "left_semi", "left_anti", "other"]
TimeMode = Literal["none", "processing_time", "event_time"]


@dataclass(frozen=True)
class Expression:
    """A column, a constant, or a function of others. Operators such as `>=` are functions too."""

    name: str
    """A function's name in lower case; of a column its identity; empty for a constant."""
    kind: Literal["column", "constant", "function"] = "function"
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    """An aggregate over distinct values."""
    value: str | None = None
    """Of a constant, as text; a span of time in milliseconds."""

    def walk(self) -> Iterator[Expression]:
        yield self
        for argument in self.arguments:
            yield from argument.walk()


@dataclass(frozen=True)
class Column:
    """A column that an operator gives: its identity, and what it is made of."""

    id: str
    made_of: Expression


@dataclass(frozen=True)
class Operator:
    """One operator of a query, as Spark's analysed plan or the SQL shows it. A tree: its inputs are operators too."""

    kind: OperatorKind
    node: str
    """The source or step in which it stands."""
    inputs: tuple[Operator, ...] = ()
    streams: bool = False
    """Of a leaf: does it bring new rows again and again?"""
    name: str = ""
    """Spark's own name for it."""
    keys: tuple[Expression, ...] = ()
    """What it groups by, or compares to find duplicates."""
    columns: tuple[Column, ...] | None = None
    """What it gives; None where it hands on what it gets."""
    condition: Expression | None = None
    join: JoinKind = "inner"
    mode: str | None = None
    """The output mode that a step with state of its own was written for."""
    time: TimeMode = "none"
    """The clock of a step with state of its own."""
    subqueries: tuple[Operator, ...] = ()
    """SELECTs that stand in its expressions."""

    @cached_property
    def is_streaming(self) -> bool:
        return self.streams or any(one.is_streaming for one in self.inputs)

    def walk(self) -> Iterator[Operator]:
        """It and everything below it, itself first."""
        yield self
        for one in self.inputs:
            yield from one.walk()

    def expressions(self) -> Iterator[Expression]:
        """Every expression in it, with its parts."""
        for one in (*self.keys, *(column.made_of for column in self.columns or ()), *filter(None, [self.condition])):
            yield from one.walk()
