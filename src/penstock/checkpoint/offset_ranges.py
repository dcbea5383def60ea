"""From where to where a batch reads, as its checkpoint shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.storage.storage import Storage, join

_HEAD = 2
"""The lines of an offsets file before the offsets: its version, and the settings of the batch."""
_SHOWN = 5
_FILE_LOG = "logOffset"


def ranges_of(storage: Storage, checkpoint: str, batch: int, names: Sequence[str]) -> dict[str, str]:
    """By source, what a planned batch reads. Raises OSError, ValueError."""
    ends = _offsets(storage, checkpoint, batch)
    starts = _offsets(storage, checkpoint, batch - 1) if batch > 0 else []
    # Spark writes the sources in the order of its plan, which is ours only where there is one.
    known = list(names) if len(names) == len(ends) == 1 else [f"source {number + 1}" for number in range(len(ends))]
    found = {}
    for number, (name, end) in enumerate(zip(known, ends, strict=True)):
        start = starts[number] if number < len(starts) else None
        if end is not None and end != start:
            files = list(_files(storage, join(checkpoint, "sources", str(number)), start, end))
            found[name] = in_words(files or list(_ranges(start, end)))
    return found


def in_words(ranges: Sequence[str]) -> str:
    more = f" and {len(ranges) - _SHOWN} more" if len(ranges) > _SHOWN else ""
    return ", ".join(ranges[:_SHOWN]) + more


def position_in_words(line: str) -> str:
    """Where a source resumes, from its line in a file of offsets."""
    if line == "-":
        return "its beginning"
    try:
        end = json.loads(line)
    except ValueError:
        return line
    if isinstance(end, dict) and set(end) == {_FILE_LOG}:
        return f"after entry {end[_FILE_LOG]} of its log of files"
    if isinstance(end, dict) and end and all(isinstance(value, dict) for value in end.values()):
        places = [f"{topic}-{part} at {offset}" for topic, each in end.items() for part, offset in each.items()]
        return in_words(places)
    return line


def _offsets(storage: Storage, checkpoint: str, batch: int) -> list[Any]:
    lines = storage.read_text(join(checkpoint, "offsets", str(batch))).splitlines()[_HEAD:]
    return [None if line == "-" else json.loads(line) for line in lines]


def _files(storage: Storage, log: str, start: Any, end: Any) -> Iterator[str]:
    """The files of a batch of Spark's file source, which counts entries of a log of its own."""
    if not isinstance(end, dict) or set(end) != {_FILE_LOG}:
        return
    first = start[_FILE_LOG] + 1 if isinstance(start, dict) else 0
    for number in range(first, end[_FILE_LOG] + 1):
        for name in (str(number), f"{number}.compact"):
            try:
                lines = storage.read_text(join(log, name)).splitlines()
            except OSError:
                continue
            entries = [json.loads(line) for line in lines if line.startswith("{")]
            yield from (entry["path"] for entry in entries if entry["batchId"] == number)
            break


def _ranges(start: Any, end: Any) -> Iterator[str]:
    """`orders-0 from 120 to 240` for the partitions of Kafka's topics; as Spark writes it for all else."""
    if isinstance(end, dict) and all(isinstance(value, dict) for value in end.values()):
        for topic, partitions in end.items():
            before = start.get(topic, {}) if isinstance(start, dict) else {}
            for partition, offset in partitions.items():
                first = before.get(partition)
                if first != offset:
                    yield f"{topic}-{partition} from {'its beginning' if first is None else first} to {offset}"
        return
    yield json.dumps(end) if start is None else f"{json.dumps(start)} to {json.dumps(end)}"
