"""Two streams joined: same key, and the right row comes within so many minutes after the left one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tests.models.events import Event
from tests.models.outcome import Outcome
from tests.models.trace import Batch

Kind = Literal["inner", "left", "right", "full", "left_semi"]
_OUTER: tuple[tuple[Kind, ...], ...] = (("left", "full"), ("right", "full"))
"""The joins that keep rows without a match, of the left side and of the right one."""


@dataclass
class Held:
    event: Event
    matched: bool = False


def joined(batches: Iterable[Batch], within: int, kind: Kind) -> Outcome:
    """Rows (key, left minute, left value, right minute, right value), with None for a side without a match.

    A left row can match until `within` minutes after it, a right row until its own minute. Once the watermark is there,
    nothing that still counts can match, and a row that never did comes out alone where its side is outer.
    """
    outcome = Outcome()
    sides: tuple[list[Held], list[Held]] = ([], [])
    for batch in batches:
        for side in (0, 1):
            for event in batch.rows[side]:
                if event.minute <= batch.late_until:
                    outcome.note(event, "late")
                else:
                    sides[side].append(Held(event))
                    outcome.note(event, "out")
                    _match(sides, side, within, kind, outcome, batch.number)
        for side, last in ((0, batch.closed_until - within), (1, batch.closed_until)):
            for one in [held for held in sides[side] if held.event.minute <= last]:
                sides[side].remove(one)
                if not one.matched and kind in _OUTER[side]:
                    outcome.emit(batch.number, *_row(*((one.event, None) if side == 0 else (None, one.event))))
    return outcome


def _match(
    sides: tuple[list[Held], list[Held]], side: int, within: int, kind: Kind, outcome: Outcome, batch: int
) -> None:
    """The newest row of a side against all that the other one holds."""
    newest = sides[side][-1]
    for other in sides[1 - side]:
        left, right = (newest, other) if side == 0 else (other, newest)
        if left.event.key == right.event.key and 0 <= right.event.minute - left.event.minute <= within:
            if kind != "left_semi":
                outcome.emit(batch, *_row(left.event, right.event))
            elif not left.matched:
                outcome.emit(batch, *_row(left.event, None))
            left.matched = right.matched = True


def _row(left: Event | None, right: Event | None) -> tuple[object, ...]:
    cells = [(one.minute, one.value) if one else (None, None) for one in (left, right)]
    key = (left or right or Event("", 0)).key
    return (key, *cells[0], *cells[1])
