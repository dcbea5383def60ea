"""Any format that Spark can write a stream to."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

COPY = """
    pipeline: copy
    latency: low
    sources: {rows: {type: files, path: in, format: {type: csv, schema: 'id BIGINT, day STRING'}}}
    sinks: {out: {of: rows, type: spark, %s}}
"""


@pytest.mark.covers("sink.spark")
def test_a_format_without_a_path(project_at, run_once):
    root = project_at(COPY % "format: noop", files={"in/1.csv": "1,mon\n"})
    assert [run_once(root).queries[0].rows_out for _ in range(2)] == [1, 0]


@pytest.mark.covers("sink.spark")
def test_a_format_with_a_path_partitions_and_options(project_at, run_once, spark):
    given = "format: parquet, path: out, partition_by: [day], spark_options: {compression: gzip}"
    root = project_at(COPY % given, files={"in/1.csv": "1,mon\n2,tue\n"})
    assert [run_once(root).queries[0].rows_out for _ in range(2)] == [2, 0]
    assert sorted(map(tuple, spark.read.parquet(str(root / "out")).collect())) == [(1, "mon"), (2, "tue")]
    assert len(list((root / "out").glob("day=*/*.gz.parquet"))) == 2
