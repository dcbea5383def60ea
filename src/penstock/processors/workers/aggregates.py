"""What is kept of the rows of a session. Pure; neither the order of rows nor that of merges matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.processors.workers.values import in_order

Kept = tuple[Any, ...]
"""The number of rows, then for each aggregate its value, with its time before it for `first` and `last`; or None."""


def of_row(row: Mapping[str, Any], time: int, aggregates: Sequence[tuple[str, str]]) -> Kept:
    """What one row contributes. Aggregates are pairs of what is made, and of which column."""
    return (1, *(_of_value(kind, row[column], time) for kind, column in aggregates))


def joined(one: Kept, other: Kept, kinds: Sequence[str]) -> Kept:
    pairs = zip(kinds, one[1:], other[1:], strict=True)
    return (one[0] + other[0], *(_both(kind, mine, theirs) for kind, mine, theirs in pairs))


def shown(kept: Kept, kinds: Sequence[str]) -> list[Any]:
    """The number of rows and the aggregates, as a row has them."""
    pairs = zip(kinds, kept[1:], strict=True)
    return [kept[0], *(value[1] if kind in ("first", "last") and value else value for kind, value in pairs)]


def _of_value(kind: str, value: Any, time: int) -> Any:
    if kind == "count":
        return int(value is not None)
    if value is None:
        return None
    return (time, value) if kind in ("first", "last") else value


def _both(kind: str, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    match kind:
        case "count" | "sum":
            return one + other
        case "first":  # of two values at one time the lesser, so that the order of rows does not matter
            return min(one, other, key=_at)
        case "last":
            return max(one, other, key=_at)
        case "min":
            return min(one, other, key=in_order)
        case _:
            return max(one, other, key=in_order)


def _at(value: tuple[int, Any]) -> tuple[int, tuple[bool, Any]]:
    return value[0], in_order(value[1])
