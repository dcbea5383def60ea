"""A pipeline that was changed goes on with its old checkpoint where Spark allows it, and is refused where not."""

from __future__ import annotations

import json

import pytest

from penstock.problems import errors_in
from tests.conftest import place

pytestmark = pytest.mark.spark

COPY = """
pipeline: copy
latency: low
sources: {lines: {type: files, path: data/in, format: {type: csv, schema: "key STRING, n INT"}}}
steps: {kept: {sql: "SELECT key, n FROM lines"}}
sinks: {out: {of: kept, type: files, path: out, format: json}}
queries: {kept: {accept: [PLAN014]}}
"""
SOURCE = """
  {name}:
    type: files
    path: in
    format: {{type: csv, schema: "key STRING, n INT, at TIMESTAMP"}}
    watermark: {{column: at, delay: 1 minute}}"""
JOIN = "SELECT l.key FROM lefts l JOIN rights r ON l.key = r.key AND l.at BETWEEN r.at AND r.at + INTERVAL 1 HOUR"
CHANGES = {
    "grouped": (
        "SELECT key, count(*) AS n FROM lefts GROUP BY key",
        "SELECT key, n, count(*) AS times FROM lefts GROUP BY key, n",
        "update",
    ),
    "summed": (
        "SELECT key, count(*) AS n FROM lefts GROUP BY key",
        "SELECT key, count(*) AS n, sum(n) AS total FROM lefts GROUP BY key",
        "update",
    ),
    "distinct_rows": ("SELECT DISTINCT key, at FROM lefts", "SELECT DISTINCT key, n, at FROM lefts", "append"),
    "joined": (JOIN, f"{JOIN} AND l.n = r.n", "append"),
    "widened": ("SELECT key FROM lefts", "SELECT key FROM lefts UNION ALL SELECT key FROM rights", "append"),
}


@pytest.mark.covers(
    "recovery.filter-changed",
    "recovery.limits-changed",
    "recovery.sink-changed",
    "recovery.sink-options-changed",
    "recovery.topics-changed",
)
def test_filters_limits_folders_and_sinks_may_change(project_at, run_once, spark):
    text = COPY
    root = project_at(text, files={"data/in/0.csv": "a,1\n"})
    changes = [
        {
            "SELECT key, n FROM lines": "SELECT upper(key) AS key, n FROM lines WHERE n > 1",
            "path: data/in,": "path: 'data/{in,more}', max_files_per_trigger: 1,",
        },
        {"type: files, path: out, format: json": "type: delta, path: table"},
        {"path: table": "path: other"},
    ]
    for number, change in enumerate(changes, 1):
        assert run_once(root).ok
        for old, new in change.items():
            assert old in text
            text = text.replace(old, new)
        place(root / "pipelines/p0.yaml", text)
        place(root / "data" / "more" / f"{number}.csv", f"b,{number}\nc,{number + 1}\n")
    assert run_once(root).ok
    lines = [line for file in (root / "out").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted((row["key"], row["n"]) for row in map(json.loads, lines)) == [("C", 2), ("a", 1)]
    tables = {name: spark.read.format("delta").load(str(root / name)).collect() for name in ("table", "other")}
    assert {name: sorted(map(tuple, rows)) for name, rows in tables.items()} == {
        "table": [("B", 2), ("C", 3)],
        "other": [("B", 3), ("C", 4)],
    }


def stateful(name: str, sql: str, mode: str) -> str:
    sources = "".join(SOURCE.format(name=source) for source in ("lefts", "rights") if source in sql)
    sink = "{of: changed, type: spark, format: noop}"
    settings = f"{{mode: {mode}, spark: {{spark.sql.shuffle.partitions: 1}}}}"
    return (
        f'pipeline: {name}\nlatency: low\nsources:{sources}\nsteps: {{changed: {{sql: "{sql}"}}}}\n'
        f"sinks: {{out: {sink}}}\nqueries: {{changed: {settings}}}\n"
    )


@pytest.mark.covers(
    "recovery.aggregation-changed", "recovery.dedup-changed", "recovery.join-changed", "recovery.sources-changed"
)
def test_state_that_does_not_fit_is_refused(project_at, run_once):
    old = [stateful(name, before, mode) for name, (before, _, mode) in CHANGES.items()]
    root = project_at(*old, files={"in/0.csv": "a,1,2026-01-01T00:00:00Z\n"})
    assert run_once(root).ok
    place(root / "in/1.csv", "a,1,2026-01-01T00:00:01Z\n")
    for number, (name, (_, after, mode)) in enumerate(CHANGES.items()):
        place(root / f"pipelines/p{number}.yaml", stateful(name, after, mode))
        result = run_once(root, name)
        assert len(errors_in(result.problems)) == 1, (name, result.problems)
