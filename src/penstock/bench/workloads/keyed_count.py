"""A count and a sum for each key, told anew whenever they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads.workload import Answer, Fields, FlinkSql, InputRecord, Step, Workload, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = 1_000
SCHEMA = "card BIGINT, cents BIGINT, sent BIGINT"
PIPELINE = f"""\
sources:
  payments:
    type: kafka
    servers: ${{SERVERS}}
    topics: ["${{INPUT}}"]
    starting: earliest
    format: {{type: json, schema: "{SCHEMA}"}}
steps:
  spent:
    sql: |
      SELECT card, count(*) AS payments, sum(cents) AS cents, max(sent) AS sent
      FROM payments GROUP BY card
sinks:
  results: {{of: spent, type: kafka, servers: "${{SERVERS}}", topic: "${{OUTPUT}}"}}
"""


def payment(number: int, sent: int) -> InputRecord:
    """A payment with one of a thousand cards."""
    card = number * 7_919 % KEYS
    return InputRecord(str(card), text_of({"card": card, "cents": number % 997, "sent": sent}))


def model() -> Step:
    payments: Counter[int] = Counter()
    cents: Counter[int] = Counter()

    def step(payment: Fields) -> Iterable[Fields]:
        card = payment["card"]
        payments[card] += 1
        cents[card] += payment["cents"]
        yield {"card": card, "payments": payments[card], "cents": cents[card], "sent": payment["sent"]}

    return step


def outcome(fields: Fields) -> Answer:
    return Answer(str(fields["card"]), fields["payments"], str(fields["cents"]))


def by_hand(payments: DataFrame, job: Job) -> DataFrame:
    from pyspark.sql import functions as f

    sums = (f.count("*").alias("payments"), f.sum("cents").alias("cents"), f.max("sent").alias("sent"))
    return payments.groupBy("card").agg(*sums)


WORKLOAD = Workload(
    name="keyed-count",
    title="count and sum for each of 1,000 keys, in update mode",
    record=payment,
    model=model,
    outcome=outcome,
    pipeline=PIPELINE,
    query="spent",
    schema=SCHEMA,
    by_hand=by_hand,
    flink=FlinkSql(
        records=SCHEMA,
        results="card BIGINT, payments BIGINT, cents BIGINT, sent BIGINT",
        insert="SELECT card, COUNT(*), SUM(cents), MAX(sent) FROM records GROUP BY card",
        key="card",
    ),
    mode="update",
    keeps_state=True,
)
