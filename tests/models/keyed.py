"""A visit per key, in state of its own: it grows with each row, and a timer ends it when nothing came for a while."""

from __future__ import annotations

from collections.abc import Iterable

from tests.models.events import Event
from tests.models.outcome import Outcome
from tests.models.trace import Batch


def visits(batches: Iterable[Batch], idle: int) -> Outcome:
    """Rows (key, count, sum of values), each when the watermark is `idle` minutes past the newest row of the visit."""
    outcome = Outcome()
    held: dict[str, list[Event]] = {}
    for batch in batches:
        for event in batch.rows[0]:
            if event.minute <= batch.late_until:
                outcome.note(event, "late")
            else:
                held.setdefault(event.key, []).append(event)
        for key, events in list(held.items()):
            if max(event.minute for event in events) + idle <= batch.closed_until:
                outcome.emit(batch.number, key, len(events), sum(event.value for event in events))
                for event in held.pop(key):
                    outcome.note(event, "out")
    for events in held.values():
        for event in events:
            outcome.note(event, "open")
    return outcome
