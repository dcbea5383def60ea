"""A `process` step in one query with other state: an aggregation, a deduplication, a join, a function with state."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.checkpoint.state_files import processor_states
from penstock.problems import errors_in
from penstock.storage.storage import LocalStorage
from tests.conftest import place

pytestmark = pytest.mark.spark

MODULE = """\
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Numbered(StatefulProcessor):
    '''Numbers the rows of each key, over all batches.'''

    def init(self, handle):
        self.seen = handle.getValueState("seen", "n LONG")

    def handleInputRows(self, key, rows, timerValues):
        seen = (self.seen.get() or (0,))[0]
        for row in sorted(rows, key=lambda row: row.ts):
            seen += 1
            yield Row(k=key[0], n=seen, ts=row.ts)
        self.seen.update((seen,))

    def close(self):
        pass
"""
SOURCE = """\
  {name}:
    type: files
    path: {name}
    max_files_per_trigger: 1
    format: {{type: json, schema: "k STRING, ts TIMESTAMP"}}
    watermark: {{column: ts, delay: 1 second}}
"""
NUMBERED = """\
  numbered:
    process: {of: clicks, key: [k], with: numbering:Numbered, time: event_time, event_time_column: ts,
              output: "k STRING, n LONG, ts TIMESTAMP"}
"""
PIPELINE = """\
pipeline: p
sources:
{sources}steps:
{numbered}  out:
    {step}
sinks: {{rows: {{of: out, type: files, path: out, format: json}}}}
"""
STEPS = {
    "aggregation": "sql: SELECT window.start AS t, k, max(n) AS n FROM numbered GROUP BY window(ts, '10 seconds'), k",
    "deduplication": "deduplicate: {of: numbered, keys: [k, ts], within_watermark: true}",
    "join": "sql: SELECT n.k, n.n, v.ts AS t FROM numbered n JOIN views v ON n.k = v.k AND n.ts = v.ts",
}
BATCHES = (
    [("a", 1), ("b", 2), ("a", 3)],
    [("a", 4), ("a", 12), ("c", 13)],
    [("b", 30), ("a", 31)],
    [("z", 90)],  # ends every window before it
    [("z", 91)],
)
RUNS = (range(3), range(3, len(BATCHES)))
"""The batches of each run."""


def rows_of(batch: list[tuple[str, int]]) -> str:
    return "".join(json.dumps({"k": k, "ts": f"2026-01-01T00:{s // 60:02}:{s % 60:02}Z"}) + "\n" for k, s in batch)


def numbers() -> list[tuple[str, int, int]]:
    """By hand: key, its number, second."""
    seen: Counter[str] = Counter()
    found = []
    for batch in BATCHES:
        for key, second in batch:
            seen[key] += 1
            found.append((key, seen[key], second))
    return found


@pytest.fixture
def written(tmp_path: Path, run_once: Callable) -> Callable[[str], list[dict[str, object]]]:
    def write(kind: str) -> list[dict[str, object]]:
        root = tmp_path / kind
        names = ("clicks", "views") if kind == "join" else ("clicks",)
        sources = "".join(SOURCE.format(name=name) for name in names)
        place(root / "penstock.yaml", "name: test\n")
        place(root / "numbering.py", MODULE)
        text = PIPELINE.format(sources=sources, numbered=NUMBERED, step=STEPS[kind])
        place(root / "pipelines/p.yaml", text)
        for of_run in RUNS:  # the second resumes the state of the first
            for number in of_run:
                for name in names:
                    place(root / name / f"{number}.json", rows_of(BATCHES[number]))
                    os.utime(root / name / f"{number}.json", (number, number))  # Spark takes the oldest first
            assert not errors_in(run_once(root).problems)
        checkpoint = root / "storage/checkpoints/p/out/0001"
        assert [state.encoding for state in processor_states(LocalStorage(), str(checkpoint))] == ["unsaferow"]
        files = sorted((root / "out").glob("*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    return write


@pytest.mark.covers("state.values")
def test_followed_by_an_aggregation(written):
    expected = {(key, second // 10 * 10): number for key, number, second in numbers() if second < 90}
    found = {(row["k"], int(row["t"][17:19])): row["n"] for row in written("aggregation")}
    assert found == expected


def test_followed_by_a_deduplication(written):
    found = Counter((row["k"], row["n"]) for row in written("deduplication"))
    assert found == Counter((key, number) for key, number, _ in numbers())


def test_beside_a_join(written):
    found = Counter((row["k"], row["n"]) for row in written("join"))
    assert found == Counter((key, number) for key, number, _ in numbers())
