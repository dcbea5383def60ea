"""What a query keeps: windows until they are closed, everything in complete mode or without a bound in time."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.models import windows
from tests.models.conftest import Run, per_window
from tests.models.events import DISORDER

pytestmark = pytest.mark.spark

COUNTS = per_window("window(event_time, '10 minutes', '5 minutes')", "start")
SESSIONS = per_window("session_window(event_time, concat(value * 5, ' minutes'))", "start", "end")
IN_PARTITIONS = ", spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition: true"
JOIN = "{sql: 'SELECT l.key, l.minute, r.minute AS later FROM lefts l JOIN rights r ON l.key = r.key'}"


@pytest.mark.covers("late.state-removed", "window.session.partial")
def test_closed_windows_are_forgotten_unless_the_mode_is_complete(run: Run) -> None:
    steps = {"appended": COUNTS, "updated": COUNTS, "completed": COUNTS, "sessions": SESSIONS}
    modes = {"updated": "update", "completed": "complete"}
    ran = run(steps, modes, spark={"sessions": IN_PARTITIONS}, events=DISORDER)
    everything = Counter(
        (event.key, start) for file in DISORDER for event in file for start in windows.starts(event.minute, 10, 5)
    )
    for step in ("appended", "updated"):
        closed_until = ran[step].batches[-1].closed_until
        held = {group for group in everything if group[1] + 10 > closed_until}
        assert ran[step].view.last.state_rows == len(held) < len(everything)
    assert ran["completed"].view.last.state_rows == len(everything)
    last = max(ran["completed"].rows)
    assert ran["completed"].rows[last] == Counter((*group, count) for group, count in everything.items())
    assert ran["sessions"].is_as(windows.sessions(ran["sessions"].batches))


@pytest.mark.covers("join.inner.unbounded")
def test_a_join_without_a_bound_in_time_keeps_every_row(run: Run) -> None:
    joined = run({"joined": JOIN}, lefts=DISORDER, rights=DISORDER[:2])["joined"]
    lefts, rights = ([event for file in stream for event in file] for stream in (DISORDER, DISORDER[:2]))
    # No watermark is looked at, so no row is late.
    pairs = [(left.key, left.minute, right.minute) for left in lefts for right in rights if left.key == right.key]
    assert sum(joined.rows.values(), Counter()) == Counter(pairs)
    assert joined.view.last.state_rows >= len(lefts) + len(rights)
