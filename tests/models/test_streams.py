"""Windows, sessions, joins, deduplication and state on random streams: Spark gives what the plain models say.

Each stream is a few files, read one a batch; the models are told which watermark each batch had, and nothing else. The
rows of every single batch must be the same. `PENSTOCK_EXAMPLES=200` draws more streams than a run of all tests does.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from tests.models import deduplication, joins, keyed, windows
from tests.models.conftest import DELAY, Run, per_window
from tests.models.events import DISORDER, Stream, streams
from tests.models.processor import IDLE_MINUTES

pytestmark = pytest.mark.spark

WITHIN = 10
drawn = settings(
    max_examples=int(os.environ.get("PENSTOCK_EXAMPLES", "4")),
    deadline=None,
    derandomize=True,
    database=None,
    # A stream takes seconds: the one that fails is told as it was drawn.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

SLIDING = per_window("window(event_time, '10 minutes', '5 minutes')", "start")
WINDOWS = {
    "tumbling": per_window("window(event_time, '10 minutes')", "start"),
    "sliding": SLIDING,
    "updated": SLIDING,
    "sessions": per_window("session_window(event_time, concat(value * 5, ' minutes'))", "start", "end"),
}
UNIQUE = {
    "dropped": "{python: 'tests.models.processor:dropped'}",
    "remembered": "{python: 'tests.models.processor:dropped_within'}",
}
STATE = {"visits": "{python: 'tests.models.processor:visits'}"}
JOINED = """{{sql: "SELECT {key} AS key, l.minute, l.value{right} FROM lefts l {kind} JOIN rights r ON l.key = r.key AND
    r.event_time >= l.event_time AND r.event_time <= l.event_time + INTERVAL {within} MINUTES"}}"""
JOINS: dict[joins.Kind, str] = {
    kind: JOINED.format(
        key="l.key" if kind in ("inner", "left", "left_semi") else "coalesce(l.key, r.key)",
        right=", NULL, NULL" if kind == "left_semi" else ", r.minute, r.value",
        kind=kind.replace("_", " ").upper(),
        within=WITHIN,
    )
    for kind in ("inner", "left", "right", "full", "left_semi")
}


@pytest.mark.covers("window.tumbling", "window.sliding", "window.session", "window.session.dynamic")
@pytest.mark.covers("model.event-time", "late.counted", "late.update", "late.append", "late.dropped")
@pytest.mark.covers("trigger.available-now.watermark")
@drawn
@given(stream=streams(files=4))
@example(stream=DISORDER)
def test_windows(run: Run, stream: Stream) -> None:
    ran = run(WINDOWS, modes={"updated": "update"}, events=stream)
    assert ran["tumbling"].is_as(windows.counted(ran["tumbling"].batches, 10, 10, "append"))
    assert ran["sliding"].is_as(windows.counted(ran["sliding"].batches, 10, 5, "append"))
    assert ran["updated"].is_as(windows.counted(ran["updated"].batches, 10, 5, "update"))
    assert ran["sessions"].is_as(windows.sessions(ran["sessions"].batches))


@pytest.mark.covers("dedup.watermark", "dedup.within")
@drawn
@given(stream=streams(files=4))
@example(stream=DISORDER)
def test_deduplication(run: Run, stream: Stream) -> None:
    ran = run(UNIQUE, events=stream)
    assert ran["dropped"].is_as(deduplication.dropped(ran["dropped"].batches))
    assert ran["remembered"].is_as(deduplication.dropped_within(ran["remembered"].batches, DELAY))


@pytest.mark.covers("state.values", "state.timers")
@drawn
@given(stream=streams(files=4))
@example(stream=DISORDER)
def test_state(run: Run, stream: Stream) -> None:
    ran = run(STATE, events=stream)
    assert ran["visits"].is_as(keyed.visits(ran["visits"].batches, IDLE_MINUTES))


@pytest.mark.covers("join.inner", "join.left", "join.right", "join.full", "join.semi", "join.time-range")
@pytest.mark.covers("join.outer.delay", "watermarks.min")
@drawn
@given(left=streams(), right=streams())
@example(left=DISORDER, right=DISORDER[::-1])
def test_joins(run: Run, left: Stream, right: Stream) -> None:
    ran = run({f"{kind}_join": sql for kind, sql in JOINS.items()}, lefts=left, rights=right)
    for kind in JOINS:
        query = ran[f"{kind}_join"]
        assert query.is_as(joins.joined(query.batches, WITHIN, kind))
