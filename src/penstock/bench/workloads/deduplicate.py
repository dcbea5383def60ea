"""Events that are sent again are left out, as long as the watermark remembers them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads.workload import Answer, Fields, FlinkSql, InputRecord, Step, Workload, event_time, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "id BIGINT, copy BIGINT, event_time TIMESTAMP, sent BIGINT"
PIPELINE = f"""\
sources:
  events:
    type: kafka
    servers: ${{SERVERS}}
    topics: ["${{INPUT}}"]
    starting: earliest
    format: {{type: json, schema: "{SCHEMA}"}}
    watermark: {{column: event_time, delay: 10 minutes}}
steps:
  once:
    deduplicate: {{of: events, keys: [id], within_watermark: true}}
sinks:
  results: {{of: once, type: kafka, servers: "${{SERVERS}}", topic: "${{OUTPUT}}"}}
"""


def event(number: int, sent: int) -> InputRecord:
    """An event; each fifth is a copy of the one three before it."""
    copy = int(number % 5 == 4)
    ident = number - 3 * copy
    fields = {"id": ident, "copy": copy, "event_time": event_time(sent), "sent": sent}
    return InputRecord(str(ident), text_of(fields))


def model() -> Step:
    seen: set[int] = set()

    def step(event: Fields) -> Iterable[Fields]:
        if event["id"] not in seen:
            seen.add(event["id"])
            yield event

    return step


def outcome(fields: Fields) -> Answer:
    return Answer(str(fields["id"]), 0, str(fields["copy"]))


def by_hand(events: DataFrame, job: Job) -> DataFrame:
    return events.withWatermark("event_time", "10 minutes").dropDuplicatesWithinWatermark(["id"])


WORKLOAD = Workload(
    name="deduplicate",
    title="duplicates left out within ten minutes; one in five is one",
    record=event,
    model=model,
    outcome=outcome,
    pipeline=PIPELINE,
    query="once",
    schema=SCHEMA,
    by_hand=by_hand,
    flink=FlinkSql(
        records="id BIGINT, copy BIGINT, event_time STRING, sent BIGINT, came AS PROCTIME()",
        results="id BIGINT, copy BIGINT, event_time STRING, sent BIGINT",
        insert=(
            "SELECT id, copy, event_time, sent FROM"
            " (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY came) AS place FROM records) WHERE place = 1"
        ),
    ),
    keeps_state=True,
)
