"""Steps with state: a user's own processor, on real Spark."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

COUNTER = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Counter(StatefulProcessor):
    def __init__(self, step=1):
        self.step = step

    def init(self, handle):
        self.total = handle.getValueState("total", "n LONG")

    def handleInputRows(self, key, rows, timerValues):
        before = self.total.get()[0] if self.total.exists() else 0
        now = before + self.step * sum(1 for _ in rows)
        self.total.update((now,))
        yield Row(word=key[0], n=now)
"""
COUNTS = """
    pipeline: counts
    sources: {lines: {type: files, path: in, format: {type: csv, schema: word STRING}}}
    steps:
      counted:
        process: {of: lines, key: [word], with: counting:Counter, options: {step: 2}, output: "word STRING, n LONG"}
    sinks: {out: {of: counted, type: files, path: out, format: json}}
"""


def rows_in(spark, folder) -> list[tuple]:
    return sorted(tuple(row) for row in spark.read.schema("word STRING, n LONG").json(str(folder)).collect())


def test_state_is_kept_over_a_restart(project_at, run_once, spark):
    root = project_at(COUNTS, files={"counting.py": COUNTER, "in/1.csv": "dog\ncat\ndog\n"})
    assert run_once(root).problems == ()
    (root / "in/2.csv").write_text("dog\nowl\n")
    assert run_once(root).problems == ()
    assert rows_in(spark, root / "out") == [("cat", 2), ("dog", 4), ("dog", 6), ("owl", 2)]
