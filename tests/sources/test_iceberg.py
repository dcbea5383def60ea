"""Iceberg tables as streams and as they once were."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from penstock.lakes.tables import full_name, moment_to_milliseconds, parts_of, snapshots
from penstock.problems import Fault
from penstock.sources import Iceberg

spark_test = pytest.mark.spark


@pytest.fixture
def table(spark) -> str:
    """A table of three snapshots: two add rows 1 and 2, and one changes row 1."""
    name = f"lake.fruit.t{uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING iceberg")
    for statement in ("INSERT INTO {} VALUES (1, 'apple')", "INSERT INTO {} VALUES (2, 'pear')",
                      "UPDATE {} SET name = 'quince' WHERE id = 1"):  # fmt: skip
        spark.sql(statement.format(name))
        time.sleep(0.002)  # snapshots are told apart by the millisecond
    return name


def found(taken: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, taken.rows))


@pytest.mark.covers("source.iceberg")
@spark_test
def test_a_stream_begins_where_it_is_told(take_all, spark, table):
    changed, second, first = snapshots(spark, table)
    skipping: dict[str, Any] = {"table": table, "skip_overwrite_snapshots": True}
    assert found(take_all(Iceberg(**skipping))) == [(1, "apple"), (2, "pear")]
    one_by_one = take_all(Iceberg(**skipping, max_files_per_batch=1))
    assert one_by_one.batches == [1, 1]
    assert take_all(Iceberg(**skipping, max_rows_per_batch=1)).batches == [1, 1]
    assert found(take_all(Iceberg(**skipping, from_snapshot=first.id))) == [(1, "apple"), (2, "pear")]
    assert found(take_all(Iceberg(**skipping, from_snapshot=second.id))) == [(2, "pear")]
    assert found(take_all(Iceberg(**skipping, from_timestamp="2001-01-01"))) == [(1, "apple"), (2, "pear")]
    assert changed.milliseconds > second.milliseconds > first.milliseconds


@spark_test
def test_a_static_read_may_be_of_an_earlier_snapshot(spark, table):
    *_, first = snapshots(spark, table)

    def read(**keys: Any) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, Iceberg(table=table, read="static", **keys).load(spark).collect()))

    assert read() == [(1, "quince"), (2, "pear")]
    assert read(snapshot_id=first.id) == [(1, "apple")]
    at = spark.sql(f"SELECT committed_at FROM {table}.snapshots WHERE snapshot_id = {first.id}").collect()[0][0]
    assert read(as_of_timestamp=at.isoformat()) == [(1, "apple")]
    with pytest.raises(Fault) as raised:
        read(snapshot_id=1)
    assert raised.value.code == "ICEBERG004"


PIPELINE = """
    pipeline: copied
    sources: {fruit: {type: iceberg, %s}}
    sinks: {out: {of: fruit, type: files, path: out, format: json}}
"""


@spark_test
@pytest.mark.parametrize(
    ("keys", "code", "said"),
    [
        ("table: lake.fruit.no_table", "ICEBERG001", "there is no table `lake`.`fruit`.`no_table`"),
        ("table: lakke.fruit.t", "ICEBERG001", "there is no table"),
        ("table: TABLE, from_snapshot: 17", "ICEBERG004", "does not keep the snapshot 17"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_problem(project_at, run_once, table, keys, code, said):
    root = project_at(PIPELINE % keys.replace("TABLE", table))
    (problem,) = run_once(root).problems
    assert (problem.code, problem.where.line) == (code, 2)
    assert said in problem.message


@spark_test
def test_a_snapshot_that_changes_rows_stops_a_stream_that_was_not_told_what_to_do(project_at, run_once, spark, table):
    root = project_at(PIPELINE % f"table: {table}")
    (problem,) = run_once(root).problems
    assert "Cannot process overwrite snapshot" in problem.message
    pipeline = root / "pipelines/p0.yaml"
    pipeline.write_text(pipeline.read_text().replace("type: iceberg", "type: iceberg, skip_overwrite_snapshots: true"))
    assert run_once(root).ok
    spark.sql(f"INSERT INTO {table} VALUES (5, 'fig')")
    assert run_once(root).ok
    assert sorted(row.id for row in spark.read.json(str(root / "out")).collect()) == [1, 2, 5]


@spark_test
def test_snapshots_that_are_gone_are_not_among_those_of_a_table(spark, table):
    _, second, first = snapshots(spark, table)
    name = table.partition(".")[2]
    spark.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {second.id})").collect()
    assert [kept.id for kept in snapshots(spark, table)] == [second.id, first.id]
    spark.sql(f"CALL lake.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2100-01-01')").collect()
    assert [kept.id for kept in snapshots(spark, table)] == [second.id]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "Field required"),
        ({"table": "a.b", "from_timestamp": "2026-01-01", "from_snapshot": 1}, "not both"),
        ({"table": "a.b", "from_timestamp": "soon"}, "should be a moment"),
        ({"table": "a.b", "snapshot_id": 1}, "is for `read: static`"),
        ({"table": "a.b", "read": "static", "from_snapshot": 1}, "is for `read: stream`"),
        ({"table": "a.b", "spark_options": {"stream-from-timestamp": 1}}, "write `from_timestamp`"),
        ({"table": "a.b", "spark_options": {"versionAsOf": 1}}, "write `snapshot_id`"),
        ({"table": "a.b", "max_rows_per_batch": 0}, "greater than 0"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Iceberg(**keys)


def test_names_of_tables() -> None:
    assert parts_of("lake.shop.orders") == ("lake", "shop", "orders")
    assert parts_of("`a.b`.`c``d`") == ("a.b", "c`d")
    for wrong in ("", "a.", ".a", "a..b", "a b", "`a", "`a`b", "a;b"):
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - the name is all that it says
            parts_of(wrong)
        assert str(raised.value) == wrong


@spark_test
def test_a_name_without_a_schema_means_a_table(spark):
    assert full_name(spark, "orders") == "`spark_catalog`.`default`.`orders`"
    assert full_name(spark, "lake.shop.`a``b`") == "`lake`.`shop`.`a``b`"


def test_moments_are_in_utc_unless_they_say_otherwise() -> None:
    assert moment_to_milliseconds("1970-01-01T00:00:01.5") == 1500
    assert moment_to_milliseconds("1970-01-01T01:00:00+01:00") == 0
