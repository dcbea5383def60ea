"""Who is there and who is missing. Pure: times are microseconds since 1970, and a row is whatever the caller keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from penstock.processors.workers.stretches import Stretch, closed_by, first_end, merged_stretches

Newer = Callable[[Stretch, Stretch], Any]
"""The last row of two stretches."""


class Presence(NamedTuple):
    """What is known of a key: the stretches without an absence that may still grow, and since when it is away."""

    stretches: list[Stretch]
    away_since: int | None
    """The time of its last row, if it is absent now."""


class Told(NamedTuple):
    """A change that is told: the status, since when, the row, and since when the key had been away."""

    status: str
    at: int
    row: Any
    away_since: int | None


def after_rows(
    known: Presence, came: Iterable[tuple[int, Any]], absent_after: int, newer: Newer
) -> tuple[Presence, list[Told]]:
    """What is known when rows have come, each with its time."""
    stretches = merged_stretches(
        [*known.stretches, *(Stretch(time, time, row) for time, row in came)], absent_after, newer
    )
    if not stretches:
        return known, []
    first, last = stretches[0], stretches[-1]
    told: list[Told] = []
    if known.away_since is not None:
        told.append(Told("returned", first.start, first.kept, known.away_since))
    before = known.stretches[-1] if known.stretches else None
    is_new = before is None or (last.end, last.kept) != (before.end, before.kept)
    if is_new and not (told and last is first):
        told.append(Told("seen", last.end, last.kept, None))
    return Presence(stretches, None), told


def after_time(known: Presence, absent_after: int, now: int) -> tuple[Presence, list[Told]]:
    """What is known when the clock shows `now`."""
    closed, waiting = closed_by(known.stretches, absent_after, now)
    told: list[Told] = []
    for one, following in zip(closed, [*closed[1:], *waiting[:1], None], strict=False):
        told.append(Told("absent", one.end + absent_after, one.kept, one.end))
        if following is not None:
            told.append(Told("returned", following.start, following.kept, one.end))
    if not closed:
        return known, told
    return Presence(waiting, None if waiting else closed[-1].end), told


def next_look(known: Presence, absent_after: int, forget_after: int | None) -> int | None:
    """When time alone changes something."""
    if known.away_since is not None:
        return None if forget_after is None else forgotten_at(known.away_since, absent_after, forget_after)
    return first_end(known.stretches, absent_after)


def forgotten_at(away_since: int, absent_after: int, forget_after: int) -> int:
    return away_since + absent_after + forget_after
