"""A table of the session's catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.sources import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def fruit(spark) -> Iterator[str]:
    spark.sql("CREATE TABLE fruit (id BIGINT, name STRING) USING parquet")
    spark.sql("INSERT INTO fruit VALUES (1, 'apple'), (2, 'pear')")
    yield "fruit"
    spark.sql("DROP TABLE fruit")


@pytest.mark.covers("table.read")
def test_a_stream_gives_the_rows_of_the_table(take_all, fruit):
    taken = take_all(Table(table=fruit, spark_options={"maxFilesPerTrigger": 1}))
    assert sorted(map(tuple, taken.rows)) == [(1, "apple"), (2, "pear")]
    assert taken.types == {"id": "bigint", "name": "string"}


@pytest.mark.covers("join.static.inner", "operation.is-streaming")
def test_a_static_one_is_joined_with_a_stream(project_at, run_once, spark, fruit):
    root = project_at(
        """
        pipeline: named
        sources:
          ids: {type: files, path: in, format: {type: csv, schema: id BIGINT}}
          fruit: {type: table, table: default.fruit, read: static}
        steps: {named: {sql: SELECT f.name FROM ids JOIN fruit f USING (id)}}
        sinks: {out: {of: named, type: files, path: out, format: text}}
        """,
        files={"in/1.csv": "2\n7\n"},
    )
    assert run_once(root).ok
    assert [row.value for row in spark.read.text(str(root / "out")).collect()] == ["pear"]
