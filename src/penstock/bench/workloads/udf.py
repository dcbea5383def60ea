"""Each order gets a score from a function in Python, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads.code.scoring import score
from penstock.bench.workloads.stateless import SCHEMA, order
from penstock.bench.workloads.workload import Answer, Fields, FlinkSql, Step, Workload, code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PIPELINE = f"""\
functions:
  score: {{python: "scoring:score", returns: BIGINT, on_error: fail}}
sources:
  orders:
    type: kafka
    servers: ${{SERVERS}}
    topics: ["${{INPUT}}"]
    starting: earliest
    format: {{type: json, schema: "{SCHEMA}"}}
steps:
  scored:
    sql: SELECT id, score(city, cents) AS score, sent FROM orders
sinks:
  results: {{of: scored, type: kafka, servers: "${{SERVERS}}", topic: "${{OUTPUT}}"}}
"""
FOR_FLINK = """\
from pyflink.table import DataTypes
from pyflink.table.udf import udf
from scoring import score as plain

score = udf(plain, result_type=DataTypes.BIGINT())
"""


def model() -> Step:
    def step(order: Fields) -> Iterable[Fields]:
        yield {"id": order["id"], "score": score(order["city"], order["cents"]), "sent": order["sent"]}

    return step


def outcome(fields: Fields) -> Answer:
    return Answer(str(fields["id"]), 0, str(fields["score"]))


def by_hand(orders: DataFrame, job: Job) -> DataFrame:
    from pyspark.sql.functions import udf

    scored = udf(score, "BIGINT")
    return orders.select("id", scored("city", "cents").alias("score"), "sent")


WORKLOAD = Workload(
    name="udf",
    title="a function in Python on each row",
    record=order,
    model=model,
    outcome=outcome,
    pipeline=PIPELINE,
    query="scored",
    schema=SCHEMA,
    by_hand=by_hand,
    flink=FlinkSql(
        records=SCHEMA,
        results="id BIGINT, score BIGINT, sent BIGINT",
        first=("CREATE TEMPORARY FUNCTION score AS 'for_flink.score' LANGUAGE PYTHON",),
        insert="SELECT id, score(city, cents), sent FROM records",
    ),
    runs_python=True,
    files={"scoring.py": code("scoring.py"), "for_flink.py": FOR_FLINK},
)
