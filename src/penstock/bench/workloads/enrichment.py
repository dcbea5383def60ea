"""Each order gets the region of its city, from a small table that every worker holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads.stateless import CITIES, SCHEMA, order
from penstock.bench.workloads.workload import Answer, Fields, FlinkSql, Step, Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMES = ("north", "south", "west")
REGIONS = {city: _NAMES[number % 3] for number, city in enumerate(CITIES[:-1])}
"""Hanoi has none: an order of that city gets no answer."""
FOLDER = "data/regions"
PIPELINE = f"""\
sources:
  orders:
    type: kafka
    servers: ${{SERVERS}}
    topics: ["${{INPUT}}"]
    starting: earliest
    format: {{type: json, schema: "{SCHEMA}"}}
  regions:
    type: files
    path: {FOLDER}
    format: {{type: csv, header: true, schema: "city STRING, region STRING"}}
    read: static
steps:
  placed:
    sql: SELECT o.id, r.region, o.cents, o.sent FROM orders o JOIN regions r ON o.city = r.city
sinks:
  results: {{of: placed, type: kafka, servers: "${{SERVERS}}", topic: "${{OUTPUT}}"}}
"""


def model() -> Step:
    def step(order: Fields) -> Iterable[Fields]:
        if order["city"] in REGIONS:
            region = REGIONS[order["city"]]
            yield {"id": order["id"], "region": region, "cents": order["cents"], "sent": order["sent"]}

    return step


def outcome(fields: Fields) -> Answer:
    return Answer(str(fields["id"]), 0, f"{fields['region']} {fields['cents']}")


def by_hand(orders: DataFrame, job: Job) -> DataFrame:
    from pyspark.sql.functions import broadcast

    regions = orders.sparkSession.read.csv(f"{job.folder}/{FOLDER}", "city STRING, region STRING", header=True)
    return orders.join(broadcast(regions), "city").select("id", "region", "cents", "sent")


WORKLOAD = Workload(
    name="enrichment",
    title="a join with a small static table",
    record=order,
    model=model,
    outcome=outcome,
    pipeline=PIPELINE,
    query="placed",
    schema=SCHEMA,
    by_hand=by_hand,
    flink=FlinkSql(
        records=SCHEMA,
        results="id BIGINT, region STRING, cents BIGINT, sent BIGINT",
        first=(
            "CREATE TEMPORARY VIEW regions AS SELECT * FROM (VALUES "
            + ", ".join(f"('{city}', '{region}')" for city, region in REGIONS.items())
            + ") AS known (city, region)",
        ),
        insert="SELECT o.id, r.region, o.cents, o.sent FROM records o JOIN regions r ON o.city = r.city",
    ),
    files={f"{FOLDER}/regions.csv": "city,region\n" + "".join(f"{city},{name}\n" for city, name in REGIONS.items())},
)
