"""Windows, sessions, joins, deduplication and state on random streams: Spark gives what the plain models say.

Each stream is a few files, read one a batch; the models get the watermark that each batch had, and nothing else. The
rows of every single batch must be the same. `make test` merges random streams into one, each under keys of its own, and
runs it once; `make proof` runs many streams one by one, each with watermarks of its own.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.models import deduplication, joins, keyed, windows
from tests.models.conftest import DELAY, Run, per_window
from tests.models.events import DISORDER, Stream, merged, random_stream
from tests.models.processor import IDLE_MINUTES

pytestmark = pytest.mark.spark

WITHIN = 10
SHARED = 6
"""Random streams that share a run."""
ALONE = int(os.environ.get("PENSTOCK_EXAMPLES", "8"))
"""Random streams that have a run of their own, in `make proof`."""
alone = pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.proof) for n in range(ALONE)])

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
@pytest.mark.covers("dedup.watermark", "dedup.within")
@pytest.mark.covers("state.values", "state.timers")
def test_windows_deduplication_and_state_on_streams_that_share_a_run(run: Run) -> None:
    dice = Random(1)
    require_models(run, merged(DISORDER, *(random_stream(dice, files=4) for _ in range(SHARED))))


@pytest.mark.covers("join.inner", "join.left", "join.right", "join.full", "join.semi", "join.time-range")
@pytest.mark.covers("join.outer.delay", "watermarks.min")
def test_joins_on_streams_that_share_a_run(run: Run) -> None:
    dice = Random(2)
    lefts, rights = ([random_stream(dice) for _ in range(SHARED)] for _ in range(2))
    require_joins(run, merged(DISORDER, *lefts), merged(DISORDER[::-1], *rights))


@alone
def test_windows_deduplication_and_state_on_a_stream_alone(run: Run, seed: int) -> None:
    require_models(run, random_stream(Random(seed), files=4) if seed else DISORDER)


@alone
def test_joins_of_two_streams_alone(run: Run, seed: int) -> None:
    dice = Random(seed)
    left, right = (random_stream(dice), random_stream(dice)) if seed else (DISORDER, DISORDER[::-1])
    require_joins(run, left, right)


def require_models(run: Run, stream: Stream) -> None:
    ran = run(WINDOWS | UNIQUE | STATE, modes={"updated": "update"}, events=stream)
    assert ran["tumbling"].is_as(windows.counted(ran["tumbling"].batches, 10, 10, "append"))
    assert ran["sliding"].is_as(windows.counted(ran["sliding"].batches, 10, 5, "append"))
    assert ran["updated"].is_as(windows.counted(ran["updated"].batches, 10, 5, "update"))
    assert ran["sessions"].is_as(windows.sessions(ran["sessions"].batches))
    assert ran["dropped"].is_as(deduplication.dropped(ran["dropped"].batches))
    assert ran["remembered"].is_as(deduplication.dropped_within(ran["remembered"].batches, DELAY))
    assert ran["visits"].is_as(keyed.visits(ran["visits"].batches, IDLE_MINUTES))


def require_joins(run: Run, left: Stream, right: Stream) -> None:
    ran = run({f"{kind}_join": sql for kind, sql in JOINS.items()}, lefts=left, rights=right)
    for kind in JOINS:
        query = ran[f"{kind}_join"]
        assert query.is_as(joins.joined(query.batches, WITHIN, kind))
