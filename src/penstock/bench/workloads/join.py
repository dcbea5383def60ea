"""Two streams joined within ten minutes: each event with the earlier one that it names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads.workload import Answer, Fields, FlinkSql, InputRecord, Step, Workload, event_time, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BACK = 7
SCHEMA = "id BIGINT, after BIGINT, event_time TIMESTAMP, sent BIGINT"
_EVENTS = f"""\
    type: kafka
    servers: ${{SERVERS}}
    topics: ["${{INPUT}}"]
    starting: earliest
    format: {{type: json, schema: "{SCHEMA}"}}
    watermark: {{column: event_time, delay: 10 minutes}}
"""
PIPELINE = f"""\
sources:
  earlier:
{_EVENTS}  later:
{_EVENTS}steps:
  followed:
    sql: |
      SELECT l.id, e.id AS after, l.sent
      FROM later l JOIN earlier e
      ON l.after = e.id AND l.event_time BETWEEN e.event_time AND e.event_time + INTERVAL 10 MINUTES
sinks:
  results: {{of: followed, type: kafka, servers: "${{SERVERS}}", topic: "${{OUTPUT}}"}}
"""


def event(number: int, sent: int) -> InputRecord:
    """An event that names the one seven before it; the first ones name the very first."""
    fields = {"id": number, "after": max(number - BACK, 0), "event_time": event_time(sent), "sent": sent}
    return InputRecord(str(number), text_of(fields))


def model() -> Step:
    seen: set[int] = set()

    def step(event: Fields) -> Iterable[Fields]:
        seen.add(event["id"])
        if event["after"] in seen:
            yield {"id": event["id"], "after": event["after"], "sent": event["sent"]}

    return step


def outcome(fields: Fields) -> Answer:
    return Answer(str(fields["id"]), 0, str(fields["after"]))


def by_hand(events: DataFrame, job: Job) -> DataFrame:
    from pyspark.sql.functions import expr

    seen = events.withWatermark("event_time", "10 minutes")
    within = "l.after = e.id AND l.event_time BETWEEN e.event_time AND e.event_time + INTERVAL 10 MINUTES"
    return seen.alias("l").join(seen.alias("e"), expr(within)).selectExpr("l.id", "e.id AS after", "l.sent")


WORKLOAD = Workload(
    name="join",
    title="a join of two streams within ten minutes",
    record=event,
    model=model,
    outcome=outcome,
    pipeline=PIPELINE,
    query="followed",
    schema=SCHEMA,
    by_hand=by_hand,
    flink=FlinkSql(
        records="id BIGINT, after BIGINT, event_time STRING, sent BIGINT",
        results="id BIGINT, after BIGINT, sent BIGINT",
        insert="SELECT l.id, e.id, l.sent FROM records l JOIN records e ON l.after = e.id",
    ),
    keeps_state=True,
)
