"""How late records come: asked of each record once, where it comes in."""

from __future__ import annotations

from functools import partial

import pytest

from penstock.engine.record_times import observed
from penstock.engine.settled import settled
from penstock.sources.kafka import Kafka

pytestmark = pytest.mark.spark
TIMED = partial(observed, source="orders")


def kafka(**keys: object) -> Kafka:
    return Kafka(servers="localhost:9092", topics=("orders",), format={"type": "json", "schema": "id BIGINT"}, **keys)


def operators(rows) -> list[str]:
    return [line.lstrip("+- :~").split(" ")[0] for line in plan_of(rows).splitlines()]


def plan_of(rows) -> str:
    return rows._jdf.queryExecution().analyzed().toString()


@pytest.mark.parametrize("whole", [False, True])
def test_records_are_timed_before_they_are_decoded_and_stay_what_they_are(spark, whole):
    plain = kafka().load_whole(spark) if whole else kafka().load(spark)
    timed = kafka().load_timed(spark, TIMED, whole=whole)
    assert timed.schema == plain.schema
    rows = settled(timed.where("_penstock.reason IS NULL").select("id"))
    plan = plan_of(rows)
    assert plan.count("currentTimeMillis") == 1
    assert operators(rows)[-3:] == ["CollectMetrics", "Project", "StreamingRelationV2"]
    assert "topic#" not in plan.rpartition("StreamingRelationV2")[0], "what nobody asks for is not copied"


def test_rows_are_handed_on_as_they_are(spark):
    records = spark.range(3).selectExpr("id", "current_timestamp() AS timestamp")
    assert observed(records, "orders").columns == records.columns
    assert [row.id for row in observed(records, "orders").collect()] == [0, 1, 2]


def test_a_table_has_no_latency(spark):
    assert "CollectMetrics" not in plan_of(kafka(read="static").load_timed(spark, TIMED))
