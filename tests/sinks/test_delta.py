"""Delta tables: written once whoever writes, made and widened as declared."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from penstock.problems import Fault, UserError
from penstock.sinks import Delta
from penstock.sinks.batch import Batch
from penstock.spark_internals import thrown_by
from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place
from tests.frames import frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

spark_test = pytest.mark.spark

COPY = """
    pipeline: copy
    sources: {rows: {type: files, path: in, format: {type: csv, schema: 'id BIGINT, day STRING'}}}
    sinks:
      out: {of: rows, type: delta, path: out, partition_by: [day]}
"""


@pytest.fixture
def spark(engine: Any) -> SparkSession:
    return engine.session({"spark.sql.shuffle.partitions": "2"})


def batch(number: int, query_id: str = "q") -> Batch:
    return Batch("p", query_id, "out", number, put_aside=lambda rows: None)


def rows(spark: SparkSession, *values: tuple[Any, ...], schema: str = "id BIGINT, name STRING") -> DataFrame:
    return frame(spark, values, schema)


def ids(spark: SparkSession, path: Any) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(str(path)).collect())


def properties(spark: SparkSession, path: str) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES delta.`{path}`").collect()}


@pytest.mark.covers("sink.delta")
@spark_test
def test_a_batch_is_written_once_by_sparks_own_sink_and_by_ours_alike(project_at, run_once, spark):
    root = project_at(COPY, files={"in/1.csv": "1,mon\n"})
    assert run_once(root).ok
    for number in (2, 3):
        place(root / f"in/{number}.csv", f"{number},tue\n")
        assert run_once(root).ok
    checkpoint = checkpoint_of(root, "copy", "rows")
    assert forget_last_commit(checkpoint) == 2
    again = run_once(root)
    assert (again.ok, again.queries[0].batches) == (True, 1)
    assert ids(spark, root / "out") == [1, 2, 3]

    query_id = json.loads((checkpoint / "metadata").read_text())["id"]
    ours = Delta(path=str(root / "out"))
    more = rows(spark, (4, "wed"), schema="id BIGINT, day STRING")
    ours.write(more, batch(2, query_id))
    assert ids(spark, root / "out") == [1, 2, 3]
    ours.write(more, batch(3, query_id))
    assert ids(spark, root / "out") == [1, 2, 3, 4]
    # The table is ahead of the checkpoint now: it would skip the query's own batch 3, and lose its row.
    place(root / "in/5.csv", "5,thu\n")
    with pytest.raises(UserError, match="LEDGER002"):
        run_once(root)
    assert ids(spark, root / "out") == [1, 2, 3, 4]


@spark_test
def test_a_new_generation_of_a_checkpoint_is_not_passed_over(project_at, run_once, spark):
    root = project_at(COPY, files={"in/1.csv": "1,mon\n2,mon\n"})
    assert run_once(root).ok
    shutil.rmtree(root / "storage")
    assert run_once(root).ok
    assert ids(spark, root / "out") == [1, 1, 2, 2]


@spark_test
@pytest.mark.parametrize("write", ["append", "upsert", "overwrite"])
def test_a_batch_that_is_written_again_changes_nothing(spark, tmp_path, write):
    path = str(tmp_path / "t")
    sink = Delta(path=path, write=write, keys=["id"] if write == "upsert" else [])
    sink.write(rows(spark, (1, "a")), batch(0))
    sink.write(rows(spark, (2, "b")), batch(1))
    held = ids(spark, path)
    assert held == ([2] if write == "overwrite" else [1, 2])
    sink.write(rows(spark, (3, "c")), batch(1))
    sink.write(rows(spark, (3, "c")), batch(0))
    assert ids(spark, path) == held
    sink.write(rows(spark, (3, "c")), batch(0, "a new generation"))
    assert ids(spark, path) == ([3] if write == "overwrite" else [1, 2, 3])


@spark_test
def test_all_ways_of_writing_know_each_others_batches(spark, tmp_path):
    path = str(tmp_path / "t")
    append, upsert = Delta(path=path), Delta(path=path, write="upsert", keys=["id"])
    append.write(rows(spark, (1, "a")), batch(0))
    upsert.write(rows(spark, (2, "b")), batch(1))
    for sink in (append, upsert, Delta(path=path, write="overwrite")):
        sink.write(rows(spark, (9, "z")), batch(1))
    assert ids(spark, path) == [1, 2]


@pytest.mark.covers("sink.delta")
@spark_test
def test_sparks_own_sink_overwrites_once(spark, tmp_path):
    source, path = tmp_path / "in", str(tmp_path / "t")
    sink = Delta(path=path, write="overwrite")
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
    assert ids(spark, path) == [3]
    sink.write(rows(spark, (99,), schema="id BIGINT"), batch(1, query_id))
    assert ids(spark, path) == [3]


@spark_test
def test_settings_of_an_upsert_do_not_outlive_it(spark, tmp_path):
    from pyspark.errors import NumberFormatException

    path = str(tmp_path / "t")
    sink = Delta(path=path, write="upsert", keys=["id"])
    sink.write(rows(spark, (1, "a")), batch(0))
    with pytest.raises(NumberFormatException):
        sink.write(rows(spark, (2, "b")).selectExpr("'two' AS id", "name"), batch(1))
    assert spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None
    assert spark.conf.get("spark.databricks.delta.write.txnVersion", None) is None
    assert [name for name in (table.name for table in spark.catalog.listTables()) if name.startswith("penstock_")] == []


@spark_test
def test_a_table_is_made_as_declared_and_widened_by_choice(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = Delta(path=path, partition_by=["name"], table_properties={"delta.enableChangeDataFeed": True})
    sink.prepare(rows(spark))
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]
    assert detail.partitionColumns == ["name"]
    assert properties(spark, path)["delta.enableChangeDataFeed"] == "true"

    wider = rows(spark, (1, "a", 2.5), schema="id BIGINT, name STRING, price DOUBLE")
    for write in (sink.judge, lambda given: sink.write(given, batch(0))):
        with pytest.raises(Fault) as raised:
            write(wider)
        assert raised.value.code == "DELTA002"
    evolving = Delta(path=path, merge_schema=True)
    evolving.judge(wider)
    evolving.prepare(wider)
    assert spark.read.format("delta").load(path).columns == ["id", "name"]  # it waits for the first batch
    evolving.write(wider, batch(0))
    upsert = Delta(path=path, merge_schema=True, write="upsert", keys=["id"], batch_sql="SELECT * FROM batch")
    upsert.write(rows(spark, (1, "a", 2.5, 7), schema="id BIGINT, name STRING, price DOUBLE, more INT"), batch(1))
    assert [tuple(row) for row in spark.read.format("delta").load(path).collect()] == [(1, "a", 2.5, 7)]


@spark_test
def test_what_does_not_fit_is_told_before_the_start(spark, tmp_path):
    path = str(tmp_path / "t")
    Delta(path=path).prepare(rows(spark))

    def said(sink: Delta, given: DataFrame) -> tuple[str, tuple[Any, ...], str]:
        with pytest.raises(Fault) as raised:  # noqa: PT012 - what is not judged is refused when the table is made
            sink.judge(given)
            sink.prepare(given)
        return raised.value.code, raised.value.keys, raised.value.message

    code, keys, message = said(Delta(path=path, write="upsert", keys=["idd"]), rows(spark))
    assert (code, keys) == ("DELTA002", ("keys",))
    assert "did you mean `id`?" in message
    assert said(Delta(path=path, partition_by=["name"]), rows(spark))[:2] == ("DELTA002", ("partition_by",))
    judged = Delta(path=path, write="upsert", keys=["id"], delete_when="nam = 'x'")
    assert said(judged, rows(spark))[:2] == ("DELTA002", ("delete_when",))
    judged = Delta(path=path, write="upsert", keys=["id"], delete_when="name")
    assert "gives string" in said(judged, rows(spark))[2]
    spaced = rows(spark, schema="`a b` INT")
    assert said(Delta(path=str(tmp_path / "other")), spaced)[0] == "DELTA003"
    spark.sql(f"CREATE TABLE delta.`{path}2` (id BIGINT NOT NULL, name STRING) USING delta")
    assert "needs a value for `id`" in said(Delta(path=f"{path}2"), rows(spark).select("name"))[2]


@spark_test
@pytest.mark.parametrize("sink", [{"write": "upsert", "keys": ["id"]}, {}], ids=["merge", "append"])
def test_a_table_that_loses_a_column_in_a_run_is_told_with_the_column(spark, tmp_path, sink):
    """Columns are judged before a run. Then somebody replaces the table, and the next batch comes."""
    path = str(tmp_path / "t")
    delta = Delta(path=path, **sink)
    delta.prepare(rows(spark, (1, "a")))
    delta.write(rows(spark, (1, "a")), batch(0))
    spark.range(1).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    with pytest.raises(Fault) as raised:
        delta.write(rows(spark, (2, "b")), batch(1))
    assert raised.value.code == "DELTA002"
    assert f"delta.`{path}` has no column `name`" in str(raised.value)
    # What Delta said is behind it, in its own words, and not how PySpark failed to read them.
    assert thrown_by(raised.value.__cause__)[0].condition.startswith("DELTA_")
    assert ids(spark, path) == [0]


@spark_test
def test_an_append_of_another_type_is_refused_by_name(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = Delta(path=path)
    sink.write(rows(spark, (1, "a")), batch(0))
    with pytest.raises(Fault) as raised:
        sink.write(rows(spark, ("x", "a"), schema="id STRING, name STRING"), batch(1))
    assert raised.value.code == "DELTA002"
    assert ids(spark, path) == [1]


@spark_test
def test_a_table_of_the_catalog_is_not_mistaken_for_a_view(spark):
    sink = Delta(table="copied_rows", write="upsert", keys=["id"])
    rows(spark, (7, "view")).createOrReplaceTempView("copied_rows")
    try:
        sink.prepare(rows(spark))
        sink.write(rows(spark, (1, "a")), batch(0))
        Delta(table="copied_rows").write(rows(spark, (2, "b")), batch(1))
        assert sorted(row.id for row in spark.table("spark_catalog.default.copied_rows").collect()) == [1, 2]
    finally:
        spark.catalog.dropTempView("copied_rows")
        spark.sql("DROP TABLE IF EXISTS spark_catalog.default.copied_rows")


@spark_test
def test_a_query_feeds_a_table_with_its_rows_and_another_with_their_sums(project_at, run_once, spark):
    root = project_at(
        COPY + "      sums: {of: rows, type: delta, path: sums, batch_sql: SELECT sum(id) AS id FROM batch}\n",
        files={"in/1.csv": "1,mon\n2,mon\n"},
    )
    assert run_once(root).ok
    forget_last_commit(checkpoint_of(root, "copy", "rows"))
    place(root / "in/2.csv", "5,tue\n6,tue\n")
    assert run_once(root).ok
    assert (ids(spark, root / "out"), ids(spark, root / "sums")) == ([1, 2, 5, 6], [3, 11])


@pytest.mark.covers("sink.delta", "foreach-batch.batch-writer")
@spark_test
def test_an_aggregation_is_upserted_and_replayed(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: days
        sources: {rows: {type: files, path: in, format: {type: csv, schema: 'id BIGINT, day STRING'}}}
        steps: {sums: {sql: 'SELECT day, sum(id) AS total FROM rows GROUP BY day'}}
        sinks: {out: {of: sums, type: delta, path: out, write: upsert, keys: [day]}}
        queries: {sums: {mode: update}}
        """,
        files={"in/1.csv": "1,mon\n2,tue\n"},
    )
    assert run_once(root).ok
    for number in (2, 3):
        forget_last_commit(checkpoint_of(root, "days", "sums"))
        place(root / f"in/{number}.csv", "10,tue\n")
        assert run_once(root).ok
    found = spark.read.format("delta").load(str(root / "out")).collect()
    assert sorted(map(tuple, found)) == [("mon", 1), ("tue", 22)]


@spark_test
def test_a_sink_that_cannot_be_is_a_problem_at_its_line(project_at, run_once):
    root = project_at(COPY.replace("partition_by: [day]", "write: upsert, keys: [dya]"), files={"in/1.csv": "1,mon\n"})
    with pytest.raises(UserError) as raised:
        run_once(root)
    (problem,) = raised.value.problems
    assert (problem.code, problem.where.line) == ("DELTA002", 4)
    assert "did you mean `day`?" in problem.message


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "give `path` or `table`"),
        ({"path": "a", "table": "b"}, "give `path` or `table`"),
        ({"path": "a", "overwrite_schema": True}, "belongs to `write: overwrite`"),
        ({"path": "a", "write": "upsert", "keys": ["i"], "max_records_per_file": 1}, "takes no options"),
        ({"path": "a", "spark_options": {"mergeSchema": True}}, "write `merge_schema`"),
        ({"table": "a..b"}, "should name a table"),
        ({"table": "a; DROP TABLE b"}, "should name a table"),
        ({"path": "a", "max_records_per_file": 0}, "greater than 0"),
        ({"path": "a", "table_properties": {"a": [1]}}, "should be a text"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Delta(**keys)


@spark_test
def test_names_inside_of_structs_may_hold_any_character(spark, tmp_path):
    odd = "named_struct('order-id', 1L, 'a.b', 'x', 'back`quote', array(named_struct('from', 2)))"
    given = spark.sql(f"SELECT 1L AS `the.id`, {odd} AS inside, map('k', {odd}) AS `by-key`")
    sink = Delta(path=str(tmp_path / "t"), write="upsert", keys=["the.id"], latest_by="the.id", merge_schema=True)
    sink.judge(given)
    sink.prepare(given)
    sink.write(given, batch(0))
    sink.write(given.selectExpr("*", "inside AS `more-of.it`"), batch(1))
    (row,) = spark.read.format("delta").load(str(tmp_path / "t")).collect()
    assert row["more-of.it"].asDict(recursive=True) == row["inside"].asDict(recursive=True)
    assert row["inside"]["back`quote"][0]["from"] == 2
    assert row["by-key"]["k"]["order-id"] == 1
