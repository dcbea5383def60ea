"""A projection and a filter: nothing is remembered between records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads.workload import Answer, Fields, FlinkSql, InputRecord, Step, Workload, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CITIES = ("amsterdam", "berlin", "cairo", "dakar", "edinburgh", "florence", "geneva", "hanoi")
SCHEMA = "id BIGINT, city STRING, cents BIGINT, sent BIGINT"
PIPELINE = f"""\
sources:
  orders:
    type: kafka
    servers: ${{SERVERS}}
    topics: ["${{INPUT}}"]
    starting: earliest
    format: {{type: json, schema: "{SCHEMA}"}}
steps:
  priced:
    sql: SELECT id, upper(city) AS city, cents * 119 AS gross, sent FROM orders WHERE cents >= 100
sinks:
  results: {{of: priced, type: kafka, servers: "${{SERVERS}}", topic: "${{OUTPUT}}"}}
"""


def order(number: int, sent: int) -> InputRecord:
    """An order of one of eight cities; one in ten is worth less than 100 cents."""
    city = CITIES[number % len(CITIES)]
    fields = {"id": number, "city": city, "cents": (number * 7_919 + 500) % 1_000, "sent": sent}
    return InputRecord(city, text_of(fields))


def model() -> Step:
    def step(order: Fields) -> Iterable[Fields]:
        if order["cents"] >= 100:
            gross = order["cents"] * 119
            yield {"id": order["id"], "city": order["city"].upper(), "gross": gross, "sent": order["sent"]}

    return step


def outcome(fields: Fields) -> Answer:
    return Answer(str(fields["id"]), 0, f"{fields['city']} {fields['gross']}")


def by_hand(orders: DataFrame, job: Job) -> DataFrame:
    return orders.where("cents >= 100").selectExpr("id", "upper(city) AS city", "cents * 119 AS gross", "sent")


WORKLOAD = Workload(
    name="stateless",
    title="projection and filter, record by record",
    record=order,
    model=model,
    outcome=outcome,
    pipeline=PIPELINE,
    query="priced",
    schema=SCHEMA,
    by_hand=by_hand,
    flink=FlinkSql(
        records=SCHEMA,
        results="id BIGINT, city STRING, gross BIGINT, sent BIGINT",
        insert="SELECT id, UPPER(city), cents * 119, sent FROM records WHERE cents >= 100",
    ),
)
