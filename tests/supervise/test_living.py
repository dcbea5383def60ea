"""A folder whose files change their columns, under supervision: each policy does what it says, without a loop."""

from __future__ import annotations

import json

import pytest

from tests.conftest import place

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: grows
sources:
  orders: {type: files, path: in, format: json, on_new_columns: POLICY}
STEPS
sinks:
  out: {of: FED, type: delta, path: out, merge_schema: true}
"""


def text(policy: str, steps: str = "", fed: str = "orders") -> str:
    return PIPELINE.replace("POLICY", policy).replace("STEPS", steps).replace("FED", fed)


def lines(*rows: dict) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def out(spark, root) -> dict[int, dict]:
    rows = [row.asDict() for row in spark.read.format("delta").load(str(root / "out")).collect()]
    assert len({row["id"] for row in rows}) == len(rows), "a row was repeated"
    return {row["id"]: row for row in rows}


def versions(root) -> list[str]:
    return sorted(file.name for file in (root / "storage/schemas/grows/orders").iterdir() if file.name[0] != ".")


FIRST = {"id": 1, "city": "Oslo"}
SECOND = {"id": 2, "city": "Rome", "amount": 5}
LOST = {"id": 3}
CHANGED = {"id": 4, "amount": "much"}


def test_add_widens_the_schema_and_starts_again(project_at, run_once, spark):
    root = project_at(text("add"), files={"in/1.json": lines(FIRST)})
    assert run_once(root).ok
    place(root / "in/2.json", lines(SECOND))
    place(root / "in/3.json", lines(LOST))
    result = run_once(root)
    assert result.ok, result.problems
    assert result.queries[0].restarts == 1
    place(root / "in/4.json", lines(CHANGED))
    again = run_once(root)
    assert again.ok
    assert again.queries[0].restarts == 0
    rows = out(spark, root)
    assert set(rows) == {1, 2, 3, 4}
    assert (rows[2]["amount"], rows[2]["_rescued"]) == (5, None)
    assert rows[3]["city"] is None
    assert rows[4]["amount"] is None
    assert json.loads(rows[4]["_rescued"])["amount"] == "much"
    assert len(versions(root)) == 2


def test_a_running_query_takes_new_columns_in_its_stride(project_at, run_once, spark):
    root = project_at(text("add"), files={f"in/{n}.json": lines({"id": n, f"c{n}": n}) for n in range(3)})
    # One file a batch: each of them brings a column.
    pipeline = root / "pipelines/p0.yaml"
    keys = "max_files_per_trigger: 1, sample_files: 1, on_new_columns"
    pipeline.write_text(pipeline.read_text().replace("on_new_columns", keys))
    result = run_once(root)
    assert result.ok, result.problems
    assert result.queries[0].restarts == 2
    rows = out(spark, root)
    assert {n: row[f"c{n}"] for n, row in rows.items()} == {0: 0, 1: 1, 2: 2}


@pytest.mark.parametrize("policy", ["rescue", "ignore"])
def test_rescue_and_ignore_never_start_again(project_at, run_once, spark, policy):
    root = project_at(text(policy), files={"in/1.json": lines(FIRST)})
    assert run_once(root).ok
    place(root / "in/2.json", lines(SECOND, LOST))
    result = run_once(root)
    assert result.ok, result.problems
    assert result.queries[0].restarts == 0
    rows = out(spark, root)
    assert set(rows) == {1, 2, 3}
    assert "amount" not in rows[2]
    if policy == "rescue":
        assert json.loads(rows[2]["_rescued"])["amount"] == 5
    assert len(versions(root)) == 1


def test_fail_names_the_column_and_the_file(project_at, run_once, spark):
    root = project_at(text("fail"), files={"in/1.json": lines(FIRST)})
    assert run_once(root).ok
    place(root / "in/2.json", lines(SECOND))
    result = run_once(root)
    assert [problem.code for problem in result.problems] == ["SCHEMA002"]
    assert "amount" in result.problems[0].message
    assert "2.json" in result.problems[0].message
    assert set(out(spark, root)) == {1}


def test_a_state_that_cannot_be_widened_is_a_problem(project_at, run_once, spark):
    steps = "steps: {singled: {python: 'steps:singled'}}"
    code = "def singled(orders):\n    return orders.dropDuplicates()\n"
    root = project_at(text("add", steps, "singled"), files={"in/1.json": lines(FIRST), "steps.py": code})
    assert run_once(root).ok
    place(root / "in/2.json", lines(SECOND))
    result = run_once(root)
    assert [problem.code for problem in result.problems] == ["SCHEMA004"]
    assert result.queries[0].restarts <= 1


def test_parquet_is_looked_at_before_a_batch_is_written(project_at, run_once, spark):
    root = project_at(text("add").replace("format: json", "format: parquet"))

    def put(row: dict, name: str) -> None:
        spark.createDataFrame([row]).coalesce(1).write.mode("overwrite").parquet(str(root / "elsewhere"))
        (root / "in").mkdir(exist_ok=True)
        next((root / "elsewhere").glob("*.parquet")).rename(root / "in" / name)

    put(FIRST, "1.parquet")
    assert run_once(root).ok
    put(SECOND, "2.parquet")
    result = run_once(root)
    assert result.ok, result.problems
    assert result.queries[0].restarts == 1
    assert out(spark, root)[2]["amount"] == 5
