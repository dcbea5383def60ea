"""Counts and sums over the spans that end with a row's time. Pure: times are microseconds since 1970."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from penstock.processors.workers.values import total

Event = tuple[Any, ...]
"""A time, then the values to sum up."""


def features(events: Sequence[Event], time: int, spans: Sequence[int]) -> list[Any]:
    """For each span the count, then the sums, of the events after `time - span` and not after `time`.

    The events are in order of time. NULLs are passed over; the sum of nothing is 0.
    """
    times = [event[0] for event in events]
    end = bisect_right(times, time)
    found: list[Any] = []
    for span in spans:
        inside = events[bisect_right(times, time - span) : end]
        found.append(len(inside))
        columns = range(1, len(events[0])) if events else ()
        found += [total(event[column] for event in inside if event[column] is not None) for column in columns]
    return found


def still_needed(events: Sequence[Event], longest: int, watermark: int) -> list[Event]:
    """What a row that may still come can look back on: it is newer than the watermark."""
    return [event for event in events if event[0] > watermark - longest]
