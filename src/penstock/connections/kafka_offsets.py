"""Offsets of Kafka: those that a checkpoint has kept, and what is lost when the broker has them no more. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.storage.batch_log import newest_batch
from penstock.storage.storage import Storage, join

Offsets = dict[str, dict[int, int]]
"""topic → partition → offset"""
IsOurs = Callable[[str], bool]
"""Is this one of the source's topics?"""


@dataclass(frozen=True, order=True)
class Lost:
    """Records of one partition that a query should have read next and that are gone."""

    topic: str
    partition: int
    first: int
    last: int | None
    """None if nobody knows: the partition is gone, or was made anew."""
    ends_at: int | None = None
    """Where the partition ends now, when that is before `first`."""

    def __str__(self) -> str:
        place = f"{self.topic}-{self.partition}"
        if self.last is not None:
            count = self.last - self.first + 1
            return f"{place}: offsets {self.first} to {self.last} are gone ({count} record{'s' if count > 1 else ''})"
        if self.ends_at is not None:
            return (
                f"{place}: it ends at offset {self.ends_at} and should go on at {self.first};"
                " the topic was deleted and made anew"
            )
        return f"{place}: the partition is gone, all from offset {self.first} on"


def lost_ranges(wanted: Offsets, earliest: Offsets, latest: Offsets) -> list[Lost]:
    """What is gone of what comes next. A partition that is not in `wanted` has lost nothing: it was never read."""
    return sorted(_lost(wanted, earliest, latest))


def _lost(wanted: Offsets, earliest: Offsets, latest: Offsets) -> Iterator[Lost]:
    for topic, partitions in wanted.items():
        for partition, offset in partitions.items():
            first = earliest.get(topic, {}).get(partition)
            end = latest.get(topic, {}).get(partition)
            if first is None or end is None:
                yield Lost(topic, partition, offset, None)
            elif offset > end:
                yield Lost(topic, partition, offset, None, end)
            elif offset < first:
                yield Lost(topic, partition, offset, first - 1)


def next_offsets(storage: Storage, checkpoint: str, is_ours: IsOurs) -> Offsets:
    """Where a query goes on in the topics of one source, from its checkpoint; empty before its first batch."""
    committed = newest_batch(storage, join(checkpoint, "commits"))
    if committed is not None:
        return in_log(storage.read_text(join(checkpoint, "offsets", str(committed))), is_ours)
    found: Offsets = {}
    for source in storage.entries(join(checkpoint, "sources")):
        first = join(source.path, "0")
        if storage.is_file(first):
            found |= in_log(storage.read_text(first), is_ours)
    return found


def in_log(text: str, is_ours: IsOurs) -> Offsets:
    """The offsets that a file of the offset log, or of a source's first offsets, holds for some topics.

    Where two sources read one topic, the offset is that of the one that is further behind.
    """
    found: Offsets = {}
    for line in text.lstrip("\0").splitlines():
        for topic, partitions in _kafka_offsets(line).items():
            if is_ours(topic):
                kept = found.setdefault(topic, {})
                for partition, offset in partitions.items():
                    kept[partition] = min(offset, kept.get(partition, offset))
    return found


def to_json(offsets: Offsets) -> str:
    """As Spark's options take them."""
    return json.dumps({topic: {str(key): value for key, value in each.items()} for topic, each in offsets.items()})


def count(ranges: Iterable[Lost]) -> int:
    """How many records are known to be gone."""
    return sum(lost.last - lost.first + 1 for lost in ranges if lost.last is not None)


def _kafka_offsets(line: str) -> Offsets:
    """The offsets of a line, if it is one of Kafka's and not the metadata or another kind of source."""
    try:
        data: Any = json.loads(line)
        if not isinstance(data, dict) or not all(isinstance(each, dict) for each in data.values()):
            return {}
        return {topic: {int(key): int(value) for key, value in each.items()} for topic, each in data.items()}
    except (ValueError, TypeError):
        return {}
