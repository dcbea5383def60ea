"""Any format that Spark can read."""

from __future__ import annotations

import pytest

from penstock.sources import Spark
from tests.conftest import place

pytestmark = pytest.mark.spark


@pytest.mark.covers("source.spark")
def test_options_reach_the_format(take_all):
    source = Spark(format="rate-micro-batch", spark_options={"rowsPerBatch": 2, "startTimestamp": 1000})
    taken = take_all(source, "SELECT value, unix_millis(timestamp) AS at FROM it")
    assert sorted(map(tuple, taken.rows)) == [(0, 1000), (1, 1000)]


@pytest.mark.covers("source.spark")
def test_a_format_of_files_is_read_as_a_stream_with_a_schema_and_a_path(take_all, tmp_path):
    place(tmp_path / "in/1.csv", "1;a\n")
    source = Spark(format="csv", path="in", schema="id BIGINT, name STRING", spark_options={"sep": ";"})
    assert list(map(tuple, take_all(source).rows)) == [(1, "a")]


@pytest.mark.covers("join.static.inner", "operation.is-streaming")
def test_a_static_one_is_a_table_to_join_with(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: named
        sources:
          ids: {type: files, path: in, format: {type: csv, schema: id BIGINT}}
          names: {type: spark, format: csv, read: static, path: names, schema: id BIGINT}
        steps: {named: {sql: SELECT i.id FROM ids i JOIN names n ON i.id = n.id}}
        sinks: {out: {of: named, type: files, path: out, format: json}}
        """,
        files={"in/1.csv": "1\n2\n", "names/n.csv": "2\n3\n"},
    )
    assert run_once(root).ok
    assert [row.id for row in spark.read.json(str(root / "out")).collect()] == [2]
