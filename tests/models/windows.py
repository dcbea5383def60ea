"""Counts per key and window: tumbling, sliding and session windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.models.events import Event
from tests.models.outcome import Outcome
from tests.models.trace import Batch


def starts(minute: int, size: int, slide: int) -> list[int]:
    """The starts of the windows that a minute falls into: each holds its start and not its end."""
    last = minute - minute % slide
    return [start for start in range(last, minute - size, -slide) if start <= minute < start + size]


def counted(batches: Iterable[Batch], size: int, slide: int, mode: str) -> Outcome:
    """Rows (key, start, count). `update` gives a window whenever it changes, `append` once, when it is closed."""
    outcome = Outcome()
    held: dict[tuple[str, int], list[Event]] = {}
    for batch in batches:
        changed = set()
        for event in batch.rows[0]:
            for start in starts(event.minute, size, slide):
                if start + size <= batch.late_until:
                    outcome.note(event, "late")
                else:
                    held.setdefault((event.key, start), []).append(event)
                    changed.add((event.key, start))
        closed = {group for group in held if group[1] + size <= batch.closed_until}
        for key, start in changed if mode == "update" else closed:
            outcome.emit(batch.number, key, start, len(held[key, start]))
        for group in closed:
            for event in held.pop(group):
                outcome.note(event, "out")
    for events in held.values():
        for event in events:
            outcome.note(event, "open")
    return outcome


@dataclass
class Session:
    """From its first event to the end of the longest gap after one of its events."""

    start: int
    end: int
    events: list[Event]


def merged(sessions: Iterable[Session]) -> list[Session]:
    """Sessions that touch are one."""
    found: list[Session] = []
    for session in sorted(sessions, key=lambda one: one.start):
        if found and session.start <= found[-1].end:
            found[-1] = Session(found[-1].start, max(found[-1].end, session.end), found[-1].events + session.events)
        else:
            found.append(session)
    return found


def sessions(batches: Iterable[Batch]) -> Outcome:
    """Rows (key, start, end, count) in append mode. An event's `value` times five minutes is the gap after it.

    An event without a gap belongs to no session.
    """
    outcome = Outcome()
    held: dict[str, list[Session]] = {}
    for batch in batches:
        for event in batch.rows[0]:
            end = event.minute + gap(event)
            if event.value == 0 or end <= batch.late_until:
                outcome.note(event, "late")
            else:
                held.setdefault(event.key, []).append(Session(event.minute, end, [event]))
        for key, found in held.items():
            found[:] = merged(found)
            for session in [one for one in found if one.end <= batch.closed_until]:
                found.remove(session)
                outcome.emit(batch.number, key, session.start, session.end, len(session.events))
                for event in session.events:
                    outcome.note(event, "out")
    for session in (one for found in held.values() for one in found):
        for event in session.events:
            outcome.note(event, "open")
    return outcome


def gap(event: Event) -> int:
    return 5 * event.value
