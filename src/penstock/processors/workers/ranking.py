"""The first places of a ranking, also when rows leave it with time. Pure: times are microseconds since 1970."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class RankedRow(NamedTuple):
    """A row with its place in the order: the greater comes first. `time` is None where rows never leave."""

    order: Any
    time: int | None
    row: Any


def ranked(entries: Iterable[RankedRow], n: int) -> list[RankedRow]:
    return sorted(entries, key=lambda entry: entry.order, reverse=True)[:n]


def worth_keeping(entries: Iterable[RankedRow], n: int) -> list[RankedRow]:
    """Those that are in the first n places, or can be when others have left.

    One that n others beat, none of which leaves before it, never will be.
    """
    kept: list[RankedRow] = []
    best: list[Any] = []  # the orders of the n greatest that leave no earlier, ascending
    for entry in sorted(entries, key=lambda entry: (entry.time or 0, entry.order), reverse=True):
        if len(best) < n or entry.order > best[0]:
            kept.append(entry)
            insort(best, entry.order)
            del best[:-n]
    return kept


def still_inside(entries: Iterable[RankedRow], span: int | None, watermark: int) -> list[RankedRow]:
    """Those that the watermark has not passed by the span."""
    if span is None:
        return list(entries)
    return [entry for entry in entries if entry.time is not None and entry.time + span > watermark]


def changed_places(before: Sequence[RankedRow], after: Sequence[RankedRow]) -> list[tuple[int, RankedRow | None]]:
    """The places, from 1, that another row holds now, or none."""
    places = range(max(len(before), len(after)))
    held = ((place, _held(before, place), _held(after, place)) for place in places)
    return [(place + 1, new) for place, old, new in held if (old and old.row) != (new and new.row)]


def _held(entries: Sequence[RankedRow], place: int) -> RankedRow | None:
    return entries[place] if place < len(entries) else None
