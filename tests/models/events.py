"""Random streams: few keys and few minutes, so that disorder, duplicates and lateness come about by themselves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from random import Random

from hypothesis import strategies as st

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Minute 0 of every stream."""


@dataclass(frozen=True, order=True)
class Event:
    """What happened to a key at a minute. Two events may be alike in all: a producer that sends twice."""

    key: str
    minute: int
    value: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"event_time": moment(self.minute).isoformat()})


Stream = tuple[tuple[Event, ...], ...]
"""The events of each file; Spark takes one file a batch."""

DISORDER: Stream = (
    (Event("a", 14, 1), Event("a", 3, 2), Event("b", 14, 0)),
    (Event("a", 9, 1), Event("a", 14, 1), Event("b", 26, 3), Event("b", 26, 3)),
    (Event("a", 4, 1), Event("b", 15, 1), Event("b", 41, 2), Event("a", 26, 1)),
    (Event("a", 16, 1), Event("b", 31, 2), Event("b", 32, 2), Event("a", 44, 1)),
)
"""Late rows, rows out of order, duplicates, and rows on the very edge of a window."""

SCHEMA = "key STRING, minute INT, value INT, event_time TIMESTAMP"


def moment(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def minute_of(milliseconds: int) -> int:
    """A watermark, as minutes of the stream. One that has not moved yet lies before all events."""
    return (milliseconds - int(START.timestamp() * 1_000)) // 60_000


@st.composite
def streams(draw: st.DrawFn, files: int = 3, rows: int = 8, pace: int = 15, keys: str = "ab") -> Stream:
    """Each file is `pace` minutes further on than the one before; a row may be far behind it, or ahead of it."""

    def event(file: int) -> st.SearchStrategy[Event]:
        minutes = st.integers(-25, 12).map(lambda offset: max(0, file * pace + offset))
        return st.builds(Event, st.sampled_from(keys), minutes, st.integers(0, 3))

    count = draw(st.integers(2, files))
    return tuple(tuple(draw(st.lists(event(file), min_size=1, max_size=rows))) for file in range(count))


def random_stream(dice: Random, files: int = 3, rows: int = 8, pace: int = 15, keys: str = "ab") -> Stream:
    """The same without shrinking, for runs that take seconds."""

    def event(file: int) -> Event:
        return Event(dice.choice(keys), max(0, file * pace + dice.randint(-25, 12)), dice.randint(0, 3))

    return tuple(tuple(event(file) for _ in range(dice.randint(1, rows))) for file in range(dice.randint(2, files)))


def merged(*streams: Stream) -> Stream:
    """One stream that has the rows of all, file by file, each under keys of its own."""
    apart = [
        [[replace(event, key=f"{event.key}{number}") for event in file] for file in stream]
        for number, stream in enumerate(streams)
    ]
    return tuple(tuple(event for file in files for event in file) for files in zip_longest(*apart, fillvalue=[]))
