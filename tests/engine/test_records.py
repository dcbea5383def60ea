"""Bad records and expectations on the real engine, and the queries that carry dead letters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import place

pytestmark = pytest.mark.spark

SCORES = """
def risk(amount):
    if amount == 13:
        raise ValueError("unlucky")
    return amount / 10.0
"""

PIPELINE = """
pipeline: shop
sources:
  orders:
    type: files
    path: in
    format: {type: csv, schema: "id BIGINT, amount BIGINT"}
    expect:
      positive: {that: amount > 0, otherwise: dead_letter}
      small: {that: amount < 1000, otherwise: drop}
      even: {that: amount % 2 = 0, otherwise: warn}
functions:
  risk: {python: scores:risk, returns: DOUBLE}
steps:
  scored: {sql: "SELECT id, risk(amount) AS risk FROM orders"}
sinks:
  out: {of: scored, type: files, path: out, format: parquet}
"""


def view(result, name):
    return next(query for query in result.queries if query.name == name)


def test_every_row_is_in_the_output_or_among_the_dead_letters(project_at, run_once, spark):
    rows = "1,10\n2,-5\n3,2000\n4,13\n5,\n6,7\n"
    root = project_at(PIPELINE, files={"in/a.csv": rows, "scores.py": SCORES})
    result = run_once(root)
    assert result.ok, result.problems
    out = {row.id: row.risk for row in spark.read.parquet(str(root / "out")).collect()}
    assert out == {1: 1.0, 6: 0.7}
    letters = spark.read.parquet(str(root / "dead_letters/shop/orders")).collect()
    assert {json.loads(row.raw)["id"]: (row.check, row.reason) for row in letters} == {
        2: ("positive", "not so: amount > 0"),
        5: ("positive", "not so: amount > 0"),
    }
    of_step = spark.read.parquet(str(root / "dead_letters/shop/scored")).collect()
    assert [(json.loads(row.raw)["id"], row.check) for row in of_step] == [(4, "risk")]
    assert of_step[0].reason == "risk(13) raised ValueError: unlucky"
    assert len({row.id for row in (*letters, *of_step)}) == 3
    data = view(result, "scored")
    assert data.bad_rows == 4
    assert data.checks == {
        "orders.decoded": 0,
        "orders.positive": 2,
        "orders.small": 2,
        "orders.even": 4,
        "scored.decoded": 0,
        "scored.risk": 1,
    }
    assert view(result, "orders_dead_letters").rows_out == 2
    assert view(result, "scored_dead_letters").rows_out == 1


def test_fail_stops_with_the_record_and_its_place(project_at, run_once):
    text = PIPELINE.replace("otherwise: dead_letter", "otherwise: fail")
    root = project_at(text, files={"in/a.csv": "1,-5\n", "scores.py": SCORES})
    problem = run_once(root).problems[-1]
    assert problem.code == "RECORD001"
    assert "`orders` has a bad record" in problem.message
    assert '"id":1' in problem.message
    assert str(problem.where) == "pipelines/p0.yaml:8:17"


def test_the_breaker_stops_after_the_batch(project_at, run_once, spark):
    text = PIPELINE + "queries: {scored: {max_bad_share: 0.5}}\n"
    root = project_at(text, files={"in/a.csv": "1,-5\n2,-6\n3,10\n", "scores.py": SCORES})
    result = run_once(root, once=False, for_seconds=30)
    assert [problem.code for problem in result.problems] == ["RECORD002"]
    assert "66.7%" in result.problems[0].message
    assert [row.id for row in spark.read.parquet(str(root / "out")).collect()] == [3]


@pytest.mark.covers("foreach-batch.several")
def test_a_batch_is_computed_once_for_several_sinks(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: both
        sources: {lines: {type: files, path: in, format: {type: csv, schema: "id BIGINT"}}}
        steps: {seen: {sql: "SELECT id, uuid() AS mark FROM lines"}}
        sinks:
          one: {of: seen, type: spark, format: parquet, path: out/one}
          two: {of: seen, type: spark, format: json, path: out/two}
          sums: {of: seen, type: spark, format: json, path: out/sums, batch_sql: SELECT sum(id) AS ids FROM batch}
        """,
        files={"in/a.csv": "1\n2\n3\n"},
    )
    result = run_once(root)
    assert result.ok
    assert result.queries[0].rows_out == 3
    one = {row.mark for row in spark.read.parquet(str(root / "out/one")).collect()}
    two = {row.mark for row in spark.read.json(str(root / "out/two")).collect()}
    assert len(one) == 3
    assert one == two
    assert [row.ids for row in spark.read.json(str(root / "out/sums")).collect()] == [6]


def forget_last_commit(root: Path, pipeline: str, query: str) -> int:
    commits = root / "storage/checkpoints" / pipeline / query / "0001/commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    return last


@pytest.mark.covers("foreach-batch.several")
def test_a_crash_between_two_sinks_repeats_neither(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: both
        sources: {lines: {type: files, path: in, format: {type: csv, schema: "id BIGINT"}}}
        sinks:
          one: {of: lines, type: spark, format: parquet, path: out/one}
          two: {of: lines, type: python, each_batch: "second:write"}
        """,
        files={
            "in/a.csv": "1\n2\n",
            "second.py": "import pathlib\nROOT = pathlib.Path(__file__).parent\n"
            "def write(rows, batch):\n    if (ROOT / 'broken').exists():\n        raise OSError('no room')\n"
            "    rows.write.mode('append').json(str(ROOT / 'out/two'))\n",
            "broken": "",
        },
    )
    failed = run_once(root)
    assert [problem.code for problem in failed.problems] == ["SINK009", "PYTHON001"]
    (root / "broken").unlink()
    place(root / "in/b.csv", "3\n")
    assert run_once(root).ok
    forget_last_commit(root, "both", "lines")
    assert run_once(root).ok
    assert sorted(row.id for row in spark.read.parquet(str(root / "out/one")).collect()) == [1, 2, 3]
    assert sorted(row.id for row in spark.read.json(str(root / "out/two")).collect()) == [1, 2, 3]


def test_expectations_are_not_for_steps_that_keep_state(project_at, run_once):
    root = project_at(
        """
        pipeline: counted
        sources: {lines: {type: files, path: in, format: {type: csv, schema: "id BIGINT"}}}
        steps:
          singled: {python: "steps:singled", expect: {small: {that: id < 3, otherwise: drop}}}
        sinks: {out: {of: singled, type: files, path: out, format: parquet}}
        """,
        files={"in/a.csv": "1\n", "steps.py": "def singled(lines):\n    return lines.dropDuplicates(['id'])\n"},
    )
    assert [problem.code for problem in run_once(root).problems] == ["EXPECT001"]
