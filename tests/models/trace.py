"""What a query did, batch by batch, as its checkpoint tells: the rows it read and the watermarks it had."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.models.events import Event, Stream, minute_of


@dataclass(frozen=True)
class Batch:
    """One batch. A row is late by the watermark of the batch before; state is closed by that of its own batch."""

    number: int
    rows: tuple[tuple[Event, ...], ...]
    """The rows of each source."""
    late_until: int
    closed_until: int


def trace(checkpoint: Path, streams: Sequence[Stream]) -> list[Batch]:
    """The batches of a query whose sources read the files of `streams`, in that order."""
    batches: list[Batch] = []
    taken = [-1] * len(streams)
    before = minute_of(0)
    for number in sorted(int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()):
        _, settings, *offsets = (checkpoint / "offsets" / str(number)).read_text().splitlines()
        reached = [-1 if text == "-" else int(json.loads(text)["logOffset"]) for text in offsets]
        rows = tuple(
            tuple(event for file in stream[last + 1 : now + 1] for event in file)
            for stream, last, now in zip(streams, taken, reached, strict=True)
        )
        watermark = minute_of(json.loads(settings)["batchWatermarkMs"])
        batches.append(Batch(number, rows, before, watermark))
        taken, before = reached, watermark
    assert taken == [len(stream) - 1 for stream in streams], "not every file was read"
    return batches


def batches_of(*streams: Stream, delay: int) -> list[Batch]:
    """The batches that one source with that delay would have: for tests of the models without Spark."""
    made: list[Batch] = []
    newest = late_until = closed_until = minute_of(0)
    for number in range(max(map(len, streams)) + 1):
        rows = tuple(stream[number] if number < len(stream) else () for stream in streams)
        made.append(Batch(number, rows, late_until, closed_until))
        newest = max([newest, *(event.minute for one in rows for event in one)])
        late_until, closed_until = closed_until, max(closed_until, newest - delay)
    return made
