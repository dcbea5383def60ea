"""Iceberg tables: written once whoever writes, made and widened as declared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from penstock.lakes.catalogs import IcebergCatalog as Catalog
from penstock.problems import Fault, UserError
from penstock.sinks import Iceberg
from penstock.sinks.batch import Batch
from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place
from tests.frames import frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

spark_test = pytest.mark.spark

PROJECT = "name: test\ncatalogs: {lake: {type: iceberg, warehouse: lake}}\n"
COPY = """
    pipeline: copy
    sources: {rows: {type: files, path: in, format: {type: csv, schema: 'id BIGINT, day STRING'}}}
    sinks:
      out: {of: rows, type: iceberg, table: %s, partition_by: [day]}
"""


@pytest.fixture
def spark(engine: Any, tmp_path: Path) -> SparkSession:
    """Sees the catalog of the project that a test may make."""
    catalog = Catalog(warehouse=str(tmp_path / "project" / "lake")).settings("lake")
    return engine.session({"spark.sql.shuffle.partitions": "2"} | catalog)


@pytest.fixture
def table() -> str:
    """A new name, in a schema that may not be there yet."""
    return f"lake.shop.t{uuid4().hex}"


def batch(number: int, query_id: str = "q") -> Batch:
    return Batch("p", query_id, "out", number, put_aside=lambda rows: None)


def rows(spark: SparkSession, *values: tuple[Any, ...], schema: str = "id BIGINT, name STRING") -> DataFrame:
    return frame(spark, values, schema)


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in spark.table(table).collect())


@pytest.mark.covers("sink.iceberg")
@spark_test
def test_a_batch_is_written_once_by_sparks_own_sink_and_by_ours_alike(project_at, run_once, spark, table):
    root = project_at(COPY % table, files={"in/1.csv": "1,mon\n"}, settings=PROJECT)
    assert run_once(root).ok
    for number in (2, 3):
        place(root / f"in/{number}.csv", f"{number},tue\n")
        assert run_once(root).ok
    checkpoint = checkpoint_of(root, "copy", "rows")
    assert forget_last_commit(checkpoint) == 2
    again = run_once(root)
    assert (again.ok, again.queries[0].batches) == (True, 1)
    assert ids(spark, table) == [1, 2, 3]

    query_id = json.loads((checkpoint / "metadata").read_text())["id"]
    more = rows(spark, (4, "wed"), schema="id BIGINT, day STRING")
    Iceberg(table=table).write(more, batch(2, query_id))
    assert ids(spark, table) == [1, 2, 3]
    Iceberg(table=table).write(more, batch(3, query_id))
    assert ids(spark, table) == [1, 2, 3, 4]
    # The table is ahead of the checkpoint now: it would skip the query's own batch 3, and lose its row.
    place(root / "in/5.csv", "5,thu\n")
    with pytest.raises(UserError, match="LEDGER002"):
        run_once(root)
    assert ids(spark, table) == [1, 2, 3, 4]

    shutil.rmtree(root / "storage")
    assert run_once(root).ok  # a new generation: all files again, nothing passed over
    assert ids(spark, table) == [1, 1, 2, 2, 3, 3, 4, 5]


@spark_test
@pytest.mark.parametrize("write", ["append", "upsert", "overwrite"])
def test_a_batch_that_is_written_again_changes_nothing(spark, table, write):
    sink = Iceberg(table=table, write=write, keys=["id"] if write == "upsert" else [])
    sink.write(rows(spark, (1, "a")), batch(0))
    sink.write(rows(spark, (2, "b")), batch(1))
    held = ids(spark, table)
    assert held == ([2] if write == "overwrite" else [1, 2])
    sink.write(rows(spark, (3, "c")), batch(1))
    sink.write(rows(spark, (3, "c")), batch(0))
    assert ids(spark, table) == held
    sink.write(rows(spark, (3, "c")), batch(0, "a new generation"))
    assert ids(spark, table) == ([3] if write == "overwrite" else [1, 2, 3])
    # Another writer's snapshots in between do not hide the note.
    spark.sql(f"INSERT INTO {table} VALUES (8, 'x')")
    sink.write(rows(spark, (9, "z")), batch(1))
    assert 9 not in ids(spark, table)


@spark_test
def test_sparks_own_sink_overwrites_once(spark, table, tmp_path):
    source = tmp_path / "in"
    sink = Iceberg(table=table, write="overwrite")
    place(source / "1.csv", "1\n2\n")
    counts = spark.readStream.schema("id BIGINT").csv(str(source)).groupBy().count().withColumnRenamed("count", "id")

    def run() -> str:
        writer = counts.writeStream.outputMode("complete").trigger(availableNow=True)
        query = sink.start(writer.option("checkpointLocation", str(tmp_path / "checkpoint")), "out")
        query.awaitTermination()
        return query.id

    sink.prepare(counts)
    run()
    place(source / "2.csv", "3\n")
    query_id = run()
    assert ids(spark, table) == [3]
    forget_last_commit(tmp_path / "checkpoint")
    run()
    sink.write(rows(spark, (99,), schema="id BIGINT"), batch(1, query_id))
    assert ids(spark, table) == [3]


@spark_test
def test_the_note_goes_with_its_snapshot(spark, table):
    """What the guarantee's reason says: the one way to a repetition is to expire the last batch's snapshot."""
    sink = Iceberg(table=table)
    sink.write(rows(spark, (1, "a")), batch(0))
    spark.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    last = spark.sql(f"SELECT max(committed_at) AS at FROM {table}.snapshots").collect()[0]["at"]
    name = table.partition(".")[2]
    spark.sql(f"CALL lake.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '{last}')").collect()
    sink.write(rows(spark, (1, "a")), batch(0))
    assert ids(spark, table) == [1, 1, 2]


@spark_test
def test_settings_of_a_write_do_not_outlive_it(spark, table):
    sink = Iceberg(table=table, write="upsert", keys=["id"])
    sink.write(rows(spark, (1, "a")), batch(0))
    Iceberg(table=table).write(rows(spark, (2, "a")), batch(1))
    with pytest.raises(Fault):
        sink.write(rows(spark).selectExpr("id", "array(1) name"), batch(2))
    assert [key for key in spark.conf.getAll if "snapshot-property" in key] == []


@spark_test
def test_a_table_is_made_as_declared_and_widened_by_choice(spark, table):
    sink = Iceberg(
        table=table,
        partition_by=["days(at)", "bucket(4, id)", "truncate(2, name)", "kind"],
        table_properties={"write.merge.mode": "merge-on-read"},
        fanout=True,
    )
    given = rows(spark, schema="id BIGINT, at TIMESTAMP, name STRING, kind STRING")
    sink.prepare(given)
    sink.prepare(given)
    about = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    parts = [about[f"Part {number}"] for number in range(4)]
    assert parts == ["days(at)", "bucket(4, id)", "truncate(2, name)", "kind"]
    assert "write.merge.mode=merge-on-read" in about["Table Properties"]

    wider = given.selectExpr("*", "1 AS more")
    with pytest.raises(Fault) as raised:
        sink.judge(wider)
    assert raised.value.code == "ICEBERG002"
    evolving = Iceberg(table=table, write="upsert", keys=["id"], merge_schema=True)
    evolving.judge(wider)
    evolving.prepare(wider)
    assert spark.table(table).columns[-1] == "kind"  # it waits for the first batch
    row = spark.sql("SELECT 1L AS id, timestamp'2026-01-01' AS at, 'n' AS name, 'k' AS kind, 5 AS more")
    evolving.write(row, batch(0))
    Iceberg(table=table, write="upsert", keys=["id"]).write(row.select("id", "more").replace(5, 6), batch(1))
    assert [(found.id, found.name, found.more) for found in spark.table(table).collect()] == [(1, "n", 6)]


@spark_test
def test_what_does_not_fit_is_told_before_the_start(spark, table):
    Iceberg(table=table).prepare(rows(spark))

    def said(sink: Iceberg, given: DataFrame) -> tuple[str, tuple[Any, ...], str]:
        with pytest.raises(Fault) as raised:  # noqa: PT012 - what is not judged is refused when the table is made
            sink.judge(given)
            sink.prepare(given)
        return raised.value.code, raised.value.keys, raised.value.message

    assert said(Iceberg(table=table, partition_by=["days(att)"]), rows(spark))[:2] == ("ICEBERG002", ("partition_by",))
    assert said(Iceberg(table="no_catalog.shop.t"), rows(spark))[0] == "ICEBERG003"
    typed = Iceberg(table=f"{table}2", partition_by=["days(name)"])
    assert said(typed, rows(spark))[0] == "ICEBERG003"
    spark.sql(f"CREATE TABLE {table}3 (id BIGINT NOT NULL, name STRING) USING iceberg")
    assert "needs a value for `id`" in said(Iceberg(table=f"{table}3"), rows(spark).select("name"))[2]


@spark_test
def test_an_aggregation_is_upserted_beside_another_sink_and_replayed(project_at, run_once, spark, table):
    root = project_at(
        f"""
        pipeline: days
        sources: {{rows: {{type: files, path: in, format: {{type: csv, schema: 'id BIGINT, day STRING'}}}}}}
        steps: {{sums: {{sql: 'SELECT day, sum(id) AS total FROM rows GROUP BY day'}}}}
        sinks:
          out: {{of: sums, type: iceberg, table: {table}, write: upsert, keys: [day]}}
          beside: {{of: sums, type: delta, path: out, write: upsert, keys: [day]}}
        queries: {{sums: {{mode: update}}}}
        """,
        files={"in/1.csv": "1,mon\n2,tue\n"},
        settings=PROJECT,
    )
    assert run_once(root).ok
    for number in (2, 3):
        forget_last_commit(checkpoint_of(root, "days", "sums"))
        place(root / f"in/{number}.csv", "10,tue\n")
        assert run_once(root).ok
    assert sorted(map(tuple, spark.table(table).collect())) == [("mon", 1), ("tue", 22)]
    assert sorted(map(tuple, spark.read.format("delta").load(str(root / "out")).collect())) == [("mon", 1), ("tue", 22)]


@spark_test
def test_a_catalog_that_is_not_there_is_a_problem_at_the_sinks_line(project_at, run_once):
    root = project_at(COPY % "lakke.shop.t", files={"in/1.csv": "1,mon\n"}, settings=PROJECT)
    with pytest.raises(UserError) as raised:
        run_once(root)
    (problem,) = raised.value.problems
    assert (problem.code, problem.where.line) == ("ICEBERG003", 4)
    assert "catalogs:" in problem.fix


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "Field required"),
        ({"table": "a.b", "partition_by": ["week(at)"]}, "should be a column, or"),
        ({"table": "a.b", "partition_by": ["bucket(id)"]}, "should be a column, or"),
        ({"table": "a.b", "write": "upsert", "keys": ["i"], "fanout": True}, "takes no options"),
        ({"table": "a b"}, "should name a table"),
        ({"table": "a.b", "fanout": "perhaps"}, "valid boolean"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Iceberg(**keys)


@spark_test
def test_names_inside_of_structs_may_hold_any_character(spark, table):
    odd = "named_struct('order-id', 1L, 'a.b', 'x', 'back`quote', array(named_struct('from', 2)))"
    given = spark.sql(f"SELECT 1L AS `the.id`, {odd} AS inside, map('k', {odd}) AS `by-key`")
    sink = Iceberg(table=table, write="upsert", keys=["the.id"], latest_by="the.id", merge_schema=True)
    sink.judge(given)
    sink.prepare(given)
    sink.write(given, batch(0))
    sink.write(given.selectExpr("*", "inside AS `more-of.it`"), batch(1))
    (row,) = spark.table(table).collect()
    assert row["more-of.it"].asDict(recursive=True) == row["inside"].asDict(recursive=True)
    assert row["inside"]["back`quote"][0]["from"] == 2
    assert row["by-key"]["k"]["order-id"] == 1
