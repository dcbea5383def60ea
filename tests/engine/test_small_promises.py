"""Small promises of a query, in one run: a function for each row, one batch for all, Spark's own metrics."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

PIPELINE = """
    pipeline: small
    latency: low
    sources: {lines: {type: files, path: in, format: text, max_files_per_trigger: 1}}
    steps:
      at_once: {sql: SELECT value FROM lines}
      watched: {sql: SELECT value FROM lines}
    sinks:
      rows: {of: at_once, type: python, foreach: "writers:write_row"}
      counts: {of: watched, type: python, each_batch: "writers:count"}
    queries:
      at_once: {trigger: once}
      watched: {trigger: available_now, spark: {spark.sql.streaming.metricsEnabled: true}}
"""
WRITERS = """
from pathlib import Path

HERE = Path(__file__).parent


def write_row(row):
    with (HERE / "rows.txt").open("a") as file:
        file.write(row.value + "\\n")


def count(rows, batch):
    jvm = rows.sparkSession._jvm
    sources = jvm.org.apache.spark.SparkEnv.get().metricsSystem().getSourcesByName("spark.streaming.watched")
    gauges = sources.apply(0).metricRegistry().getGauges().keySet() if sources.size() else []
    with (HERE / "counts.txt").open("a") as file:
        file.write(f"{rows.count()} {'inputRate-total' in set(gauges)}\\n")
"""


@pytest.mark.covers("foreach.function", "trigger.once", "trigger.available-now", "query.dropwizard")
def test_rows_one_by_one_all_in_one_batch_and_metrics_of_the_query(project_at, run_once):
    files = {"in/1": "a\n", "in/2": "b\n", "in/3": "c\n", "writers.py": WRITERS}
    root = project_at(PIPELINE, files=files)
    result = run_once(root, once=False)
    assert result.ok, result.problems
    assert {query.name: query.batches for query in result.queries} == {"at_once": 1, "watched": 3}
    assert sorted((root / "rows.txt").read_text().split()) == ["a", "b", "c"]
    assert (root / "counts.txt").read_text().splitlines() == ["1 True"] * 3


@pytest.mark.covers("refused.actions")
@pytest.mark.parametrize("action", ["count()", "show()", "collect()", "foreach(print)"])
def test_an_action_on_a_stream_is_told_at_its_line(project_at, run_once, action):
    text = """
    pipeline: acting
    sources: {lines: {type: files, path: in, format: text}}
    steps: {acted: {python: "steps:acted"}}
    sinks: {out: {of: acted, type: spark, format: noop}}
    """
    code = f"def acted(lines):\n    lines.{action}\n    return lines\n"
    root = project_at(text, files={"in/1": "a\n", "steps.py": code})
    (problem,) = run_once(root).problems
    assert problem.code == "STEP001"
    assert (problem.where.file, problem.where.line) == ("steps.py", 2)
