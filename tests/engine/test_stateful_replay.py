"""Queries that keep state, replayed: what a table already has must not leave the state behind."""

from __future__ import annotations

import pytest

from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: counted
sources: {lines: {type: files, path: in, format: {type: csv, schema: "word STRING, n BIGINT"}}}
steps: {counts: {sql: "SELECT word, sum(n) AS n FROM lines GROUP BY word"}}
sinks:
  out: {of: counts, type: delta, path: out, SINK}
queries: {counts: {mode: MODE}}
"""


@pytest.mark.covers("model.incremental", "recovery.crash")
@pytest.mark.parametrize(
    ("sink", "mode"), [("write: overwrite", "complete"), ("write: upsert, keys: [word]", "update")]
)
def test_state_goes_on_after_a_batch_that_the_table_has(project_at, run_once, spark, sink, mode):
    root = project_at(PIPELINE.replace("SINK", sink).replace("MODE", mode), files={"in/0.csv": "a,1\nb,1\n"})
    for batch in range(1, 3):
        assert run_once(root).ok
        forget_last_commit(checkpoint_of(root, "counted", "counts"))
        place(root / f"in/{batch}.csv", "a,1\n")
    assert run_once(root).ok
    found = {row.word: row.n for row in spark.read.format("delta").load(str(root / "out")).collect()}
    assert found == {"a": 3, "b": 1}


WINDOWS = """
pipeline: counted
sources:
  lines:
    type: files
    path: in
    format: {type: csv, schema: "at TIMESTAMP, n BIGINT"}
    watermark: {column: at, delay: 0 seconds}
steps: {counts: {sql: "SELECT window.start AS at, sum(n) AS n FROM lines GROUP BY window(at, '1 minute')"}}
sinks: {out: {of: counts, type: files, path: out, format: json}}
"""


@pytest.mark.covers("recovery.crash")
def test_state_goes_on_after_a_batch_that_the_folder_has(project_at, run_once, spark):
    """Spark's file sink passes over it: no task of it runs, and its state must be found all the same."""
    root = project_at(WINDOWS, files={"in/0.csv": "2026-01-01 00:00:10,1\n"})
    for minute in range(1, 4):
        assert run_once(root).ok
        forget_last_commit(checkpoint_of(root, "counted", "counts"))
        place(root / f"in/{minute}.csv", f"2026-01-01 00:0{minute}:10,1\n2026-01-01 00:0{minute}:50,1\n")
    assert run_once(root).ok
    found = sorted((row.at[14:16], row.n) for row in spark.read.json(str(root / "out")).collect())
    assert found == [("00", 1), ("01", 2), ("02", 2)]


def test_a_fresh_generation_writes_to_a_table_that_is_there(project_at, run_once, spark):
    import shutil

    text = """
    pipeline: copied
    sources: {lines: {type: files, path: in, format: {type: csv, schema: "n BIGINT"}}}
    sinks: {out: {of: lines, type: delta, path: out}}
    """
    root = project_at(text, files={"in/0.csv": "1\n"})
    assert run_once(root).ok
    shutil.rmtree(root / "storage")
    place(root / "in/1.csv", "2\n")
    assert run_once(root).ok
    rows = spark.read.format("delta").load(str(root / "out")).collect()
    assert sorted(row.n for row in rows) == [1, 1, 2]
