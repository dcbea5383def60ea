"""Functions of the user's own in SQL: on one row, on columns of pandas, on arrays of Arrow."""

from __future__ import annotations

import pytest

MODULE = """
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


def doubled(n):
    return n * 2


def shouted(words: pd.Series) -> pd.Series:
    return words.str.upper()


def added(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.add(left, right)
"""
PIPELINE = """
pipeline: functions
sources: {words: {type: files, path: in, max_files_per_trigger: 1, format: {type: csv, schema: "word STRING, n INT"}}}
functions:
  doubled: {python: ours:doubled, returns: INT}
  shouted: {python: ours:shouted, returns: STRING, kind: pandas}
  added: {python: ours:added, returns: INT, kind: arrow}
steps:
  made:
    sql: SELECT shouted(word) AS word, doubled(n) AS twice, added(n, n) AS again FROM words WHERE added(n, n) > 2
sinks:
  out: {of: made, type: files, path: out, format: parquet}
"""


@pytest.mark.spark
@pytest.mark.covers("operation.function")
def test_each_kind_on_a_stream(project_at, run_once, spark):
    rows = {"in/a.csv": "one,1\ntwo,2\n", "in/b.csv": "two,3\n", "ours.py": MODULE}
    root = project_at(PIPELINE, files=rows)
    result = run_once(root)
    assert result.ok, result.problems
    found = spark.read.parquet(str(root / "out")).collect()
    assert sorted(map(tuple, found)) == [("TWO", 4, 4), ("TWO", 6, 6)]


def test_rows_of_many_cannot_be_put_aside(judged):
    text = PIPELINE.replace("kind: arrow}", "kind: arrow, on_error: dead_letter}")
    (problem,) = judged(text)
    assert "gets many rows at once, so no single row can be dropped or put aside" in problem.message
    assert str(problem.where).startswith("pipeline.yaml:7:")
