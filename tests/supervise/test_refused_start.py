"""A run that is refused has changed nothing outside: no table, no column, no generation of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from penstock.actions.check import check
from penstock.problems import UserError, errors_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
LAKE = "name: test\ncatalogs: {{lake: {{type: iceberg, warehouse: {}}}}}\n"
IN = "type: files, path: in, format: {type: csv, schema: 'id BIGINT, day STRING'}"
REFUSED = f"""
    pipeline: refused
    sources: {{rows: {{{IN}}}}}
    sinks: {{out: {{of: rows, type: delta, path: narrow}}}}
"""
"""Its table lacks the column `day`, and may not get it."""


@pytest.fixture
def spark(engine: Any) -> SparkSession:
    return engine.session({"spark.sql.shuffle.partitions": "2"})


def columns(spark: SparkSession, path: Path) -> list[str]:
    return spark.read.format("delta").load(str(path)).columns


def test_a_run_that_is_refused_changes_no_table_and_makes_none(project_at, run_once, start_engine, spark):
    name = f"lake.shop.t{uuid4().hex[:8]}"
    root = project_at(
        f"""
        pipeline: many
        sources: {{rows: {{{IN}}}}}
        steps: {{again: {{sql: SELECT * FROM rows}}, third: {{sql: SELECT * FROM rows}}}}
        sinks:
          widened: {{of: rows, type: delta, path: widened, merge_schema: true}}
          merged: {{of: again, type: delta, path: merged, merge_schema: true, write: upsert, keys: [id]}}
          made: {{of: third, type: delta, path: made}}
          in_lake: {{of: third, type: iceberg, table: {name}, merge_schema: true}}
        queries: {{again: {{mode: append}}}}
        """,
        REFUSED,
        files={"in/1.csv": "1,mon\n"},
        settings=LAKE.format(spark.conf.get("spark.sql.catalog.lake.warehouse")),
    )
    for table in ("widened", "merged", "narrow"):
        spark.range(0).write.format("delta").save(str(root / table))
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    with pytest.raises(UserError) as raised:
        run_once(root)
    assert [problem.code for problem in raised.value.problems] == ["DELTA002"]
    # `check` reports the same, and changes as little.
    assert errors_in(check(root, (), None, start_engine).problems) == raised.value.problems
    assert errors_in(check(root, (), None, start_engine, offline=True).problems) == ()
    assert [columns(spark, root / table) for table in ("widened", "merged")] == [["id"], ["id"]]
    assert spark.table(name).columns == ["id"]
    assert not (root / "made").exists()
    assert not list(root.glob("storage/checkpoints/*/*/0001*"))

    # Where nothing is refused, the same tables get their columns, in the batch that needs them.
    (root / "pipelines/p1.yaml").unlink()
    assert run_once(root).ok
    for table in ("widened", "merged", "made"):
        found = spark.read.format("delta").load(str(root / table)).select("id", "day").collect()
        assert [tuple(row) for row in found] == [(1, "mon")]
    assert [tuple(row) for row in spark.table(name).select("id", "day").collect()] == [(1, "mon")]


def test_a_start_that_spark_refuses_leaves_no_new_generation(project_at, run_once):
    """Nobody but Spark knows its formats, and it looks for one when the query starts."""
    root = project_at(
        f"""
        pipeline: copy
        sources: {{rows: {{{IN}}}}}
        sinks: {{out: {{of: rows, type: spark, format: no_such_format}}}}
        """,
        files={"in/1.csv": "1,mon\n"},
    )
    with pytest.raises(UserError):
        run_once(root)
    assert not list(root.glob("storage/checkpoints/*/*/0001*"))


@pytest.mark.services
def test_a_run_that_is_refused_makes_nothing_in_postgresql(project_at, run_once, spark, postgres, pg):
    pg.execute("DROP SCHEMA IF EXISTS penstock_ledger CASCADE")
    root = project_at(
        f"""
        pipeline: many
        sources: {{rows: {{{IN}}}}}
        sinks: {{out: {{of: rows, type: postgres, url: "{postgres.url}", table: made, create_table: true}}}}
        """,
        REFUSED,
        files={"in/1.csv": "1,mon\n"},
    )
    spark.range(0).write.format("delta").save(str(root / "narrow"))
    with pytest.raises(UserError):
        run_once(root)
    assert pg.execute("SELECT to_regclass('made')").fetchone() == (None,)
    assert pg.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'penstock_ledger'").fetchone() == (0,)


def test_check_reports_once_what_spark_and_the_sink_both_refuse(project_at, start_engine):
    sink = "{of: rows, type: delta, path: out, partition_by: [dya]}"
    root = project_at(f"pipeline: p\nsources: {{rows: {{{IN}}}}}\nsinks: {{out: {sink}}}\n", files={"in/1.csv": ""})
    (problem,) = errors_in(check(root, (), None, start_engine).problems)
    assert "`dya`" in problem.message
