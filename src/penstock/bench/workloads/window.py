"""A count and a sum for each minute and city, by event time, told anew whenever they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads.stateless import CITIES
from penstock.bench.workloads.workload import Answer, Fields, FlinkSql, InputRecord, Step, Workload, event_time, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MINUTE = 60_000_000
SCHEMA = "city STRING, cents BIGINT, event_time TIMESTAMP, sent BIGINT"
PIPELINE = f"""\
sources:
  orders:
    type: kafka
    servers: ${{SERVERS}}
    topics: ["${{INPUT}}"]
    starting: earliest
    format: {{type: json, schema: "{SCHEMA}"}}
    watermark: {{column: event_time, delay: 10 minutes}}
steps:
  revenue:
    sql: |
      SELECT unix_micros(window.start) AS minute, city, count(*) AS orders, sum(cents) AS cents, max(sent) AS sent
      FROM orders GROUP BY window(event_time, '1 minute'), city
sinks:
  results: {{of: revenue, type: kafka, servers: "${{SERVERS}}", topic: "${{OUTPUT}}"}}
"""


def order(number: int, sent: int) -> InputRecord:
    city = CITIES[number % len(CITIES)]
    return InputRecord(
        city, text_of({"city": city, "cents": number % 997, "event_time": event_time(sent), "sent": sent})
    )


def model() -> Step:
    orders: Counter[tuple[int, str]] = Counter()
    cents: Counter[tuple[int, str]] = Counter()

    def step(order: Fields) -> Iterable[Fields]:
        minute, city = order["sent"] // MINUTE * MINUTE, order["city"]
        orders[minute, city] += 1
        cents[minute, city] += order["cents"]
        counts = {"orders": orders[minute, city], "cents": cents[minute, city]}
        yield {"minute": minute, "city": city, **counts, "sent": order["sent"]}

    return step


def outcome(fields: Fields) -> Answer:
    return Answer(f"{fields['minute']} {fields['city']}", fields["orders"], str(fields["cents"]))


def by_hand(orders: DataFrame, job: Job) -> DataFrame:
    from pyspark.sql import functions as f

    windows = orders.withWatermark("event_time", "10 minutes").groupBy(f.window("event_time", "1 minute"), "city")
    sums = windows.agg(f.count("*").alias("orders"), f.sum("cents").alias("cents"), f.max("sent").alias("sent"))
    return sums.selectExpr("unix_micros(window.start) AS minute", "city", "orders", "cents", "sent")


WORKLOAD = Workload(
    name="window",
    title="count and sum for each minute of event time and city, in update mode",
    record=order,
    model=model,
    outcome=outcome,
    pipeline=PIPELINE,
    query="revenue",
    schema=SCHEMA,
    by_hand=by_hand,
    flink=FlinkSql(
        records="city STRING, cents BIGINT, event_time STRING, sent BIGINT",
        results="`minute` BIGINT, city STRING, orders BIGINT, cents BIGINT, sent BIGINT",
        insert=(
            f"SELECT sent - MOD(sent, {MINUTE}), city, COUNT(*), SUM(cents), MAX(sent) FROM records"
            f" GROUP BY sent - MOD(sent, {MINUTE}), city"
        ),
        key="`minute`, city",
    ),
    mode="update",
    keeps_state=True,
)
