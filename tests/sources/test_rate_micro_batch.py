"""The same number of rows in every batch."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark


@pytest.mark.covers("source.rate-micro-batch")
def test_every_batch_has_its_rows_and_its_generated_time(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: ticks
        sources:
          ticks:
            type: rate_micro_batch
            rows_per_batch: 3
            num_partitions: 2
            start_timestamp: 86400000
            advance_millis_per_batch: 5000
        steps: {seen: {sql: "SELECT value, unix_millis(timestamp) AS at, spark_partition_id() AS part FROM ticks"}}
        sinks: {out: {of: seen, type: files, path: out, format: json}}
        """
    )
    assert [run_once(root).queries[0].rows_in for _ in range(2)] == [3, 3]
    rows = spark.read.json(str(root / "out")).collect()
    assert sorted((row.value, row.at) for row in rows) == [
        *((value, 86_400_000) for value in range(3)),
        *((value, 86_405_000) for value in range(3, 6)),
    ]
    assert {row.part for row in rows} == {0, 1}
