"""Plans are optimised once where every batch would get the same one."""

from __future__ import annotations

import pytest

from penstock.engine.settled import settled

pytestmark = pytest.mark.spark


@pytest.fixture
def stream(spark):
    spark.readStream.format("rate").load().createOrReplaceTempView("rates")
    spark.range(5).createOrReplaceTempView("table_beside")
    return spark.sql


def test_rows_of_one_stream_start_from_an_optimised_plan(stream):
    rows = stream("SELECT 1 + 1 AS two, value FROM (SELECT * FROM rates WHERE value > 1) WHERE value > 1")
    plan = settled(rows)._jdf.queryExecution().analyzed().toString()
    assert settled(rows).schema == rows.schema
    assert settled(rows).isStreaming
    assert "2 AS two" in plan
    assert plan.count("Filter") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT value, current_timestamp() AS at FROM rates",
        "SELECT value FROM rates WHERE timestamp > CAST('now' AS TIMESTAMP)",
        "SELECT value FROM rates JOIN table_beside ON id = value",
        "SELECT value FROM rates WHERE value IN (SELECT id FROM table_beside)",
        "SELECT value FROM rates UNION ALL SELECT value FROM rates",
    ],
)
def test_what_each_batch_must_see_for_itself_stays(stream, sql):
    rows = stream(sql)
    assert settled(rows) is rows
