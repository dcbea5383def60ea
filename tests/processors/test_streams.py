"""Ready-made processors on real Spark: disorder, duplicates, late rows and a restart, against plain models."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import place
from tests.processors import collected

pytestmark = [pytest.mark.spark, pytest.mark.covers("state.ready-made", "state.restart")]

START = datetime(2026, 3, 1, tzinfo=UTC)
SOURCE = """\
pipeline: {name}
latency: low
sources:
  events:
    type: files
    path: in
    max_files_per_trigger: 1
    format:
      type: json
      schema: "key STRING, at TIMESTAMP, minute INT, value INT, tags ARRAY<STRING>, more MAP<STRING, TIMESTAMP>"
    watermark: {{column: at, delay: 10 minutes}}
steps:
  {name}:
    process: {{of: events, key: [key], with: {word}, options: {options}}}
sinks:
  {name}: {{of: {name}, type: python, each_batch: 'tests.processors.collected:keep'}}
queries:
  {name}: {{spark: {{spark.sql.shuffle.partitions: 1}}}}
"""
AGGREGATES = "{first: first(value), last: last(at), total: sum(value), values: count(value)}"
QUERIES = {
    "sessions": ("sessionize", f"{{time: at, gap: 10 minutes, aggregates: {AGGREGATES}}}"),
    "velocities": ("velocity", "{time: at, spans: [5 minutes, 1 hour], sums: [value]}"),
    "best": ("top_n", "{n: 2, by: value, time: at, span: 20 minutes}"),
    "presence": ("last_seen", "{time: at, absent_after: 10 minutes}"),
    "clocked": ("last_seen", "{clock: processing_time, absent_after: 1 ms}"),
}
PAIRS = (("sessions", "velocities"), ("best", "presence"), ("clocked",))
"""Run side by side. Each starts a Python of its own on the driver, and more of them take too long on two cores."""


class Event(NamedTuple):
    key: str
    minute: int | None
    value: int | None = None

    def to_json(self) -> str:
        at = None if self.minute is None else moment(self.minute).isoformat()
        told = {"key": self.key, "at": at, "minute": self.minute, "value": self.value, "tags": [self.key]}
        return json.dumps(told | {"more": {"then": at}})


class Batch(NamedTuple):
    """What a batch took in: a row is late by the watermark of the batch before, state is closed by its own."""

    rows: list[Event]
    closed_until: float


FILES = (
    [Event("a", 14, 1), Event("a", 3, 2), Event("b", 14), Event("b", None, 7)],
    [Event("a", 9, 1), Event("a", 14, 1), Event("b", 26, 3), Event("b", 26, 3)],
    # Here the second run begins. Minute 4 is late; 16 and 20 are not, and join what lies around them.
    [Event("a", 4, 9), Event("b", 18, 5), Event("b", 41, 2), Event("a", 26, 0)],
    [Event("a", 18, 4), Event("b", 33, 2), Event("b", 31, 8), Event("a", 70, 1)],
    [Event("b", 71, 1), Event("a", 90, 6)],
)


def moment(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def minute_of(moment: datetime | None) -> int | None:
    # Spark gives times back without their zone; a test run has UTC everywhere.
    return None if moment is None else (moment.replace(tzinfo=UTC) - START) // timedelta(minutes=1)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ready")
    place(folder / "penstock.yaml", "name: ready\n")
    for name, (word, options) in QUERIES.items():
        text = SOURCE.format(name=name, word=word, options=options)
        place(folder / "pipelines" / f"{name}.yaml", text)
    return folder


def feed(root: Path, numbers: range) -> None:
    for number in numbers:
        file = root / "in" / f"{number}.json"
        place(file, "".join(f"{event.to_json()}\n" for event in FILES[number]))
        os.utime(file, (1_700_000_000 + number,) * 2)


def batches_of(root: Path, query: str) -> list[Batch]:
    """What each batch took in and closed, as the checkpoint tells; late rows are left out."""
    home = root / "storage" / "checkpoints" / query / query / "0001" / "offsets"
    found, late_until, taken = [], float("-inf"), 0
    for number in sorted(int(file.name) for file in home.iterdir() if file.name.isdigit()):
        _, settings, offset = (home / str(number)).read_text().splitlines()
        reached = json.loads(offset)["logOffset"] + 1
        rows = [event for file in FILES[taken:reached] for event in file]
        milliseconds = json.loads(settings)["batchWatermarkMs"]
        closed_until = (milliseconds / 1_000 - START.timestamp()) / 60
        timely = [row for row in rows if row.minute is None or row.minute > late_until]
        found.append(Batch(timely, closed_until))
        late_until, taken = closed_until, reached
    assert taken == len(FILES)
    return found


def by_key(batches: list[Batch]) -> dict[str, list[Event]]:
    found: defaultdict[str, list[Event]] = defaultdict(list)
    for batch in batches:
        for row in batch.rows:
            found[row.key].append(row)
    return found


def stretches(rows: list[Event], gap: int) -> list[list[Event]]:
    found: list[list[Event]] = []
    for row in sorted(row for row in rows if row.minute is not None):
        if found and row.minute < found[-1][-1].minute + gap:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def told(name: str) -> list[dict[str, Any]]:
    return [row for _, rows in sorted(collected.held[name].items()) for row in rows]


@pytest.fixture(scope="module")
def ran(root: Path, engine) -> Path:
    """Two runs: the second goes on where the first has stopped."""
    from dataclasses import replace

    from penstock.actions.run import RunOptions, run
    from penstock.supervise.stopping import Stop

    shared = replace(engine, jvm=None)
    collected.held.clear()

    def ignored(given: object) -> None: ...

    late = 0
    for numbers in (range(2), range(2, len(FILES))):
        feed(root, numbers)
        for pair in PAIRS:
            result = run(root, pair, None, RunOptions(once=True), lambda *given: shared, Stop(), ignored, ignored)
            assert result.ok, result.problems
            late += sum(query.late_rows for query in result.queries)
    assert late >= 4  # one row, in each query that goes by event time
    return root


def test_sessions(ran):
    batches = batches_of(ran, "sessions")
    wanted = []
    for key, rows in by_key(batches).items():
        wanted += [(key, None, None, 1, None, row.value, 1) for row in rows if row.minute is None]
        for group in stretches(rows, 10):
            values = [row.value for row in group if row.value is not None]
            first, last = group[0].minute, group[-1].minute
            if last + 10 <= batches[-1].closed_until:
                wanted.append((key, first, last, len(group), last, sum(values) if values else None, len(values)))
    names = ("key", "session_start", "session_end", "events", "last", "total", "values")
    assert len(wanted) >= 4
    cells = [[row[name] for name in names] for row in told("sessions")]
    found = [tuple(minute_of(cell) if isinstance(cell, datetime) else cell for cell in row) for row in cells]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_velocities(ran):
    so_far: list[Event] = []
    wanted = []
    for batch in batches_of(ran, "velocities"):
        so_far += batch.rows
        for row in batch.rows:
            features: list[int | None] = []
            for span in (5, 60):
                inside = [
                    other.value
                    for other in so_far
                    if row.minute is not None
                    and other.minute is not None
                    and other.key == row.key
                    and row.minute - span < other.minute <= row.minute
                ]
                sums = sum(value for value in inside if value is not None)
                features += [None, None] if row.minute is None else [len(inside), sums]
            wanted.append((*row, *features))
    names = ("key", "minute", "value", "count_5_minutes", "sum_value_5_minutes", "count_1_hour", "sum_value_1_hour")
    found = [tuple(row[name] for name in names) for row in told("velocities")]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


def test_rankings(ran):
    """What was told, place by place, adds up to the ranking that all rows give."""
    table: dict[tuple[str, int], tuple] = {}
    so_far: list[Event] = []
    for number, batch in enumerate(batches_of(ran, "best")):
        so_far += [row for row in batch.rows if row.value is not None and row.minute is not None]
        for row in collected.held["best"].get(number, []):
            table[row["key"], row["rank"]] = (row["value"], row["minute"])
            assert (row["tags"] is None) == (row["more"] is None) == (row["value"] is None)
        for key in "ab":
            inside = [row for row in so_far if row.key == key and row.minute + 20 > batch.closed_until]
            wanted = sorted(((row.value, row.minute) for row in inside), reverse=True)[:2]
            assert [
                held for held in (table.get((key, 1)), table.get((key, 2))) if held and held[0] is not None
            ] == wanted


def test_presence(ran):
    batches = batches_of(ran, "presence")
    until = batches[-1].closed_until
    absent, returned = [], []
    for key, rows in by_key(batches).items():
        ends = [group[-1].minute for group in stretches(rows, 10)]
        absent += [(key, end, end + 10, end) for end in ends if end + 10 <= until]
        returned += [(key, end) for end, _ in pairwise(ends) if end + 10 <= until]
    found = told("presence")
    rows = {status: [row for row in found if row["status"] == status] for status in ("absent", "returned")}
    times = [(row["key"], row["minute"], row["status_at"], row["away_since"]) for row in rows["absent"]]
    assert sorted((*row[:2], *map(minute_of, row[2:])) for row in times) == sorted(absent)
    assert sorted((row["key"], minute_of(row["away_since"])) for row in rows["returned"]) == sorted(returned)
    assert len(returned) > 2
    newest = {row["key"]: row["minute"] for row in found if row["status"] != "absent"}
    assert newest == {"a": 90, "b": 71}
    assert all(minute_of(row["more"]["then"]) == row["minute"] for row in found)


def test_presence_by_the_clock_of_the_machine(ran):
    """Each file has rows of both keys, and a millisecond lies between any two batches."""
    for key in "ab":
        said = [row["status"] for row in told("clocked") if row["key"] == key]
        assert said[0] == "seen"
        assert said.count("returned") == len(FILES) - 1
        assert said.count("absent") in (len(FILES) - 1, len(FILES))
