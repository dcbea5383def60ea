"""Delta tables as streams, as change feeds and as they once were."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from penstock.sources import Delta

spark_test = pytest.mark.spark


@pytest.fixture
def versions(spark, tmp_path) -> str:
    """A table of four versions: 0 makes it, 1 and 2 add rows 1 and 2, 3 changes row 1."""
    path = str(tmp_path / "fruit")
    table = f"delta.`{path}`"
    feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING delta {feed}")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'apple')")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'pear')")
    spark.sql(f"UPDATE {table} SET name = 'quince' WHERE id = 1")
    return path


def found(taken: Any) -> list[tuple[Any, ...]]:
    return sorted((row.id, row.name) for row in taken.rows)


@pytest.mark.covers("source.delta")
@spark_test
def test_a_stream_begins_where_it_is_told(take_all, versions):
    assert found(take_all(Delta(path=versions))) == [(1, "quince"), (2, "pear")]
    one_by_one = take_all(Delta(path=versions, max_files_per_trigger=1))
    assert one_by_one.batches == [1, 1]
    added = Delta(path=versions, starting_version=1, skip_change_commits=True)
    assert found(take_all(added)) == [(1, "apple"), (2, "pear")]
    assert found(take_all(Delta(path=versions, starting_version="latest", skip_change_commits=True))) == []
    since = Delta(path=versions, starting_timestamp="2001-01-01T00:00:00Z", skip_change_commits=True)
    assert found(take_all(since)) == [(1, "apple"), (2, "pear")]


@spark_test
def test_a_change_feed_gives_every_change(take_all, versions):
    taken = take_all(Delta(path=versions, change_feed=True, starting_version=0))
    changes = sorted((row._commit_version, row._change_type, row.id, row.name) for row in taken.rows)
    assert changes == [
        (1, "insert", 1, "apple"),
        (2, "insert", 2, "pear"),
        (3, "update_postimage", 1, "quince"),
        (3, "update_preimage", 1, "apple"),
    ]
    assert taken.types["_commit_timestamp"] == "timestamp"


@spark_test
def test_a_static_read_may_be_of_an_earlier_version(spark, versions):
    def read(**keys: Any) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, Delta(path=versions, read="static", **keys).load(spark).collect()))

    assert read() == [(1, "quince"), (2, "pear")]
    assert read(version_as_of=2) == [(1, "apple"), (2, "pear")]
    changes = Delta(path=versions, read="static", change_feed=True, starting_version=2, ending_version=2).load(spark)
    assert [(row.id, row._change_type) for row in changes.collect()] == [(2, "insert")]


@spark_test
def test_columns_may_be_renamed_where_the_schema_is_tracked(take_all, spark, tmp_path):
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    tracked = Delta(path=path, schema_tracking_location=str(tmp_path / "tracked"))
    assert [row.id for row in take_all(tracked).rows] == [1]
    assert list((tmp_path / "tracked").rglob("_schema_log*")) != []


PIPELINE = """
    pipeline: copied
    sources: {fruit: {type: delta, %s}}
    sinks: {out: {of: fruit, type: files, path: out, format: json}}
"""


@spark_test
@pytest.mark.parametrize(
    ("keys", "code", "said"),
    [
        ("path: folder", "DELTA001", "there is no Delta table at"),
        ("table: default.no_table", "DELTA001", "there is no table `default`.`no_table`"),
        ("path: plain, change_feed: true", "DELTA004", "does not record changes"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_problem(project_at, run_once, spark, keys, code, said):
    root = project_at(PIPELINE % keys, files={"folder/1.txt": "no table"})
    spark.sql(f"CREATE TABLE delta.`{root}/plain` (id BIGINT) USING delta")
    (problem,) = run_once(root).problems
    assert (problem.code, problem.where.line) == (code, 2)
    assert said in problem.message


@spark_test
def test_a_commit_that_changes_rows_stops_a_stream_that_was_not_told_what_to_do(project_at, run_once, spark):
    root = project_at(PIPELINE % "path: t")
    spark.sql(f"CREATE TABLE delta.`{root}/t` (id BIGINT) USING delta")
    spark.sql(f"INSERT INTO delta.`{root}/t` VALUES (1), (2)")
    assert run_once(root).ok
    spark.sql(f"UPDATE delta.`{root}/t` SET id = 3 WHERE id = 2")
    (problem,) = run_once(root).problems
    assert "skipChangeCommits" in problem.message
    pipeline = root / "pipelines/p0.yaml"
    pipeline.write_text(pipeline.read_text().replace("path: t", "path: t, skip_change_commits: true"))
    spark.sql(f"INSERT INTO delta.`{root}/t` VALUES (4)")
    assert run_once(root).ok
    assert sorted(row.id for row in spark.read.json(str(root / "out")).collect()) == [1, 2, 4]


@pytest.mark.covers("join.static.inner")
@spark_test
def test_a_static_table_is_joined_with_a_stream(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: named
        sources:
          ids: {type: files, path: in, format: {type: csv, schema: id BIGINT}, max_files_per_trigger: 1}
          fruit: {type: delta, path: fruit, read: static}
        steps: {named: {sql: SELECT f.name FROM ids JOIN fruit f USING (id)}}
        sinks: {out: {of: named, type: files, path: out, format: text}}
        """,
        files={"in/1.csv": "2\n7\n"},
    )
    spark.sql(f"CREATE TABLE delta.`{root}/fruit` (id BIGINT, name STRING) USING delta")
    spark.sql(f"INSERT INTO delta.`{root}/fruit` VALUES (2, 'pear')")
    assert run_once(root).ok
    assert [row.value for row in spark.read.text(str(root / "out")).collect()] == ["pear"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "give `path` or `table`"),
        ({"path": "a", "table": "b"}, "give `path` or `table`, not both"),
        ({"path": "a", "starting_version": -1}, "0 or more"),
        ({"path": "a", "starting_version": "first"}, "'latest'"),
        ({"path": "a", "starting_timestamp": "soon"}, "should be a moment"),
        ({"path": "a", "starting_version": 1, "starting_timestamp": "2026-01-01"}, "not both"),
        ({"path": "a", "ignore_changes": True, "skip_change_commits": True}, "not both"),
        ({"path": "a", "version_as_of": 1}, "is for `read: static`"),
        ({"path": "a", "read": "static", "max_files_per_trigger": 1}, "is for `read: stream`"),
        ({"path": "a", "read": "static", "change_feed": True}, "needs `starting_version`"),
        ({"path": "a", "read": "static", "starting_version": 1}, "only with `change_feed: true`"),
        ({"path": "a", "spark_options": {"startingVersion": 1}}, "write `starting_version`"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Delta(**keys)
