"""Rows whose key was seen before are dropped, as long as the key is remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from tests.models.events import Event
from tests.models.outcome import Outcome
from tests.models.trace import Batch


def _kept(
    batches: Iterable[Batch], identity: Callable[[Event], Hashable], forgotten_at: Callable[[Event], int]
) -> Outcome:
    outcome = Outcome()
    held: dict[Hashable, int] = {}
    for batch in batches:
        for event in batch.rows[0]:
            if event.minute <= batch.late_until:
                outcome.note(event, "late")
            elif identity(event) in held:
                outcome.note(event, "duplicate")
            else:
                held[identity(event)] = forgotten_at(event)
                outcome.note(event, "out")
                outcome.emit(batch.number, event.key, event.minute, event.value)
        held = {key: until for key, until in held.items() if until > batch.closed_until}
    return outcome


def dropped(batches: Iterable[Batch]) -> Outcome:
    """Rows (key, minute, value): the first of each key, minute and value. Forgotten when the watermark passes it."""
    return _kept(batches, lambda event: event, lambda event: event.minute)


def dropped_within(batches: Iterable[Batch], delay: int) -> Outcome:
    """Rows (key, minute, value): the first of each key and value, which stands for the others for `delay` minutes."""
    return _kept(batches, lambda event: (event.key, event.value), lambda event: event.minute + delay)
