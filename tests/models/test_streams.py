"""Windows, sessions, joins, deduplication and state on random streams: Spark gives what the plain models say.

Each stream is a few files, read one a batch; the models are told which watermark each batch had, and nothing else. The
rows of every single batch must be the same. `PENSTOCK_EXAMPLES=200` draws more streams than a run of all tests does.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from penstock.actions.run import RunResult
from tests.conftest import place
from tests.models import collected, deduplication, joins, keyed, windows
from tests.models.events import SCHEMA, START, Event, Stream, streams
from tests.models.outcome import Outcome, Row
from tests.models.processor import IDLE_MINUTES
from tests.models.trace import Batch, trace

pytestmark = pytest.mark.spark

DELAY = 10
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
DISORDER: Stream = (
    (Event("a", 14, 1), Event("a", 3, 2), Event("b", 14, 0)),
    (Event("a", 9, 1), Event("a", 14, 1), Event("b", 26, 3), Event("b", 26, 3)),
    (Event("a", 4, 1), Event("b", 15, 1), Event("b", 41, 2), Event("a", 26, 1)),
    (Event("a", 16, 1), Event("b", 31, 2), Event("b", 32, 2), Event("a", 44, 1)),
)
"""Late rows, rows out of order, duplicates, and rows on the very edge of a window."""

SOURCE = f"""
  {{name}}:
    type: files
    path: {{name}}
    max_files_per_trigger: 1
    format: {{{{type: json, schema: "{SCHEMA}"}}}}
    watermark: {{{{column: event_time, delay: {DELAY} minutes}}}}"""
QUERY = "  {step}: {{mode: {mode}, spark: {{spark.sql.shuffle.partitions: 1}}}}"
SINK = "  {step}: {{of: {step}, type: python, each_batch: 'tests.models.collected:keep'}}"


@dataclass(frozen=True)
class Ran:
    """A query that has run."""

    batches: list[Batch]
    rows: dict[int, Counter[Row]]

    def is_as(self, model: Outcome) -> bool:
        """Every batch gave these rows, and no row that went in is unaccounted for."""
        assert self.rows == model.rows, f"watermarks: {[(one.late_until, one.closed_until) for one in self.batches]}"
        read = {event for batch in self.batches for rows in batch.rows for event in rows}
        assert {event for event, _ in model.fates} == read
        return True


Run = Callable[..., dict[str, Ran]]


@pytest.fixture
def run(run_once: Callable[..., RunResult], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs steps, given as YAML, over streams: in append mode, but for those that `update` names."""

    def run_it(steps: dict[str, str], update: tuple[str, ...] = (), **inputs: Stream) -> dict[str, Ran]:
        root = tmp_path_factory.mktemp("model")
        for name, stream in inputs.items():
            for number, events in enumerate(stream):
                file = root / name / f"{number}.json"
                place(file, "".join(f"{event.to_json()}\n" for event in events))
                os.utime(file, (1_700_000_000 + number,) * 2)  # Spark takes files in the order of their time
        modes = {step: "update" if step in update else "append" for step in steps}
        text = [
            "pipeline: model\nlatency: low\nsources:",
            *(SOURCE.format(name=name) for name in inputs),
            "steps:",
            *(f"  {step}: {body}" for step, body in steps.items()),
            "sinks:",
            *(SINK.format(step=step) for step in steps),
            "queries:",
            *(QUERY.format(step=step, mode=mode) for step, mode in modes.items()),
        ]
        place(root / "penstock.yaml", "name: models\n")
        place(root / "pipelines" / "model.yaml", "\n".join(text))
        collected.held.clear()
        result = run_once(root)
        assert result.ok, result.problems
        home = root / "storage" / "checkpoints" / "model"
        read = list(inputs.values())
        return {step: Ran(trace(home / step / "0001", read), dict(collected.held[step])) for step in steps}

    return run_it


def minutes(column: str) -> str:
    return f"(unix_seconds({column}) - {int(START.timestamp())}) DIV 60"


def per_window(window: str, *columns: str) -> str:
    """A step that counts per key and window."""
    times = ", ".join(f"{minutes(f'w.{column}')} AS {column}" for column in columns)
    counts = f"SELECT key, {window} AS w, count(*) AS n FROM events GROUP BY key, {window}"
    return f'{{sql: "SELECT key, {times}, n FROM ({counts})"}}'


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
    ran = run(WINDOWS, update=("updated",), events=stream)
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
