"""The models themselves, without Spark: what must hold of them whatever the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings

from tests.models import deduplication, joins, keyed, windows
from tests.models.events import Event, Stream, streams
from tests.models.outcome import Outcome
from tests.models.trace import Batch, batches_of

few = settings(max_examples=40, deadline=None)
PATIENT = 1_000
"""A delay after which nothing is late."""
Model = Callable[[list[Batch]], Outcome]


def events_of(*streams: Stream) -> list[Event]:
    return [event for stream in streams for file in stream for event in file]


def all_rows(outcome: Outcome) -> Counter:
    return sum(outcome.rows.values(), Counter())


@pytest.mark.parametrize(
    "model",
    [
        lambda batches: windows.counted(batches, 10, 10, "append"),
        windows.sessions,
        deduplication.dropped,
        lambda batches: deduplication.dropped_within(batches, 10),
        lambda batches: keyed.visits(batches, 10),
    ],
    ids=["windows", "sessions", "dropped", "dropped within", "visits"],
)
@few
@given(stream=streams())
def test_every_row_has_one_fate(model: Model, stream: Stream) -> None:
    outcome = model(batches_of(stream, delay=10))
    assert Counter(event for event, _ in outcome.fates) == Counter(events_of(stream))


@few
@given(stream=streams())
def test_a_row_falls_into_as_many_windows_as_overlap(stream: Stream) -> None:
    outcome = windows.counted(batches_of(stream, delay=10), 10, 5, "append")
    assert len(outcome.fates) == 2 * len(events_of(stream))
    assert all(start <= minute < start + 10 for minute in range(40) for start in windows.starts(minute, 10, 5))


@few
@given(stream=streams())
def test_the_last_word_of_update_is_what_append_says(stream: Stream) -> None:
    batches = batches_of(stream, delay=10)
    last: dict[tuple, object] = {}
    for _, rows in sorted(windows.counted(batches, 10, 5, "update").rows.items()):
        last |= {row[:2]: row[2] for row in rows}
    appended = all_rows(windows.counted(batches, 10, 5, "append"))
    assert max(appended.values(), default=1) == 1
    assert {row[:2]: row[2] for row in appended}.items() <= last.items()


@few
@given(stream=streams())
def test_sessions_of_a_key_never_touch(stream: Stream) -> None:
    found = [windows.Session(event.minute, event.minute + windows.gap(event), [event]) for event in events_of(stream)]
    merged = windows.merged(found)
    assert all(one.end < other.start for one, other in pairwise(merged))
    assert sum(len(session.events) for session in merged) == len(found)


@few
@given(stream=streams())
def test_nothing_comes_out_twice(stream: Stream) -> None:
    rows = all_rows(deduplication.dropped(batches_of(stream, delay=PATIENT)))
    assert rows == Counter({(event.key, event.minute, event.value) for event in events_of(stream)})


@few
@given(left=streams(), right=streams())
def test_joins_of_patient_streams_are_those_of_tables(left: Stream, right: Stream) -> None:
    batches = batches_of(left, right, delay=PATIENT)
    pairs = Counter(
        (one.key, one.minute, one.value, other.minute, other.value)
        for one in events_of(left)
        for other in events_of(right)
        if one.key == other.key and one.minute <= other.minute <= one.minute + 10
    )
    assert all_rows(joins.joined(batches, 10, "inner")) == pairs
    assert all_rows(joins.joined(batches, 10, "full")) == pairs  # nobody knows yet who will stay alone
    matched = {row[:3] for row in pairs}
    lefts = Counter((event.key, event.minute, event.value) for event in events_of(left))
    semi = Counter({(*row, None, None): count for row, count in lefts.items() if row in matched})
    assert all_rows(joins.joined(batches, 10, "left_semi")) == semi


@few
@given(left=streams(), right=streams())
def test_a_row_is_matched_or_alone_and_never_both(left: Stream, right: Stream) -> None:
    rows = all_rows(joins.joined(batches_of(left, right, delay=10), 10, "left"))
    alone = {row[:3] for row in rows if row[3] is None}
    matched = {row[:3] for row in rows if row[3] is not None}
    events = Counter((event.key, event.minute, event.value) for event in events_of(left))
    assert all(events[row] > 1 for row in alone & matched)
