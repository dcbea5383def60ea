"""A table of the session's catalog."""

from __future__ import annotations

import pytest

from tests.conftest import place

pytestmark = pytest.mark.spark

COPY = """
    pipeline: copy
    latency: low
    sources: {rows: {type: files, path: in, format: {type: csv, schema: 'id BIGINT, day STRING'}}}
    sinks: {out: {of: rows, type: table, table: %s}}
"""


@pytest.fixture
def table(spark):
    yield "copied"
    spark.sql("DROP TABLE IF EXISTS copied")


HIVE = "name: test\ncatalogs: {spark_catalog: {type: hive}}\n"


@pytest.mark.covers("table.write")
def test_a_table_is_made_on_the_first_start_and_added_to_from_then_on(project_at, run_once, spark, table):
    root = project_at(
        COPY % f"{table}, format: json, partition_by: [day], path: here", files={"in/1.csv": "1,mon\n"}, settings=HIVE
    )
    assert run_once(root).ok
    place(root / "in/2.csv", "2,tue\n")
    assert [run_once(root).queries[0].rows_out for _ in range(2)] == [1, 0]
    assert sorted(map(tuple, spark.table(table).collect())) == [(1, "mon"), (2, "tue")]
    assert sorted(path.name for path in (root / "here").glob("day=*")) == ["day=mon", "day=tue"]
    about = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    assert about["Provider"] == "json"


@pytest.mark.covers("table.write")
def test_a_table_that_is_there_is_written_as_it_is(project_at, run_once, spark, table):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, day STRING) USING orc")
    root = project_at(COPY % f"default.{table}, format: orc", files={"in/1.csv": "1,mon\n"}, settings=HIVE)
    assert run_once(root).ok
    assert list(map(tuple, spark.table(table).collect())) == [(1, "mon")]
