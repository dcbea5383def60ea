"""Rows at a steady pace."""

from __future__ import annotations

from datetime import datetime

import pytest

from penstock.sources import Rate
from tests.sources.conftest import wait_for

pytestmark = pytest.mark.spark

PARTITIONED = "SELECT value, timestamp, spark_partition_id() AS partition FROM it"


@pytest.mark.covers("source.rate")
def test_so_many_rows_each_second_in_so_many_partitions(flowing):
    with flowing(Rate(rows_per_second=40, num_partitions=3), PARTITIONED) as so_far:
        rows = wait_for(so_far)
    assert len(rows) % 40 == 0
    assert sorted(row.value for row in rows) == list(range(len(rows)))
    assert {row.partition for row in rows} == {0, 1, 2}
    assert isinstance(rows[0].timestamp, datetime)


@pytest.mark.covers("source.rate.ramp-up")
def test_the_pace_is_reached_by_and_by(flowing):
    # Ten more rows each second, until 110 are reached after ten seconds.
    with flowing(Rate(rows_per_second=110, ramp_up_time="10 seconds")) as so_far:
        assert len(wait_for(so_far)) in [5 * second * (second + 1) for second in range(1, 11)]
