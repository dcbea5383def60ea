"""kill -9 of a running pipeline, at random moments: Kafka into Delta and PostgreSQL from one step."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import place
from tests.kills import last_commit, run_and_kill, run_to_the_end
from tests.services import produce

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.proof]

KILLS = 20
RECORDS = 500
"""That come before each start."""
PROJECT = """\
name: crashes
secrets: [PG_URL]
spark:
  spark.master: local[2,4]
  # A process that lives for seconds is up sooner without Java's second compiler.
  spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
"""
PIPELINE = """\
pipeline: orders
latency: low
sources:
  orders:
    type: kafka
    servers: ${KAFKA_SERVERS}
    topics: ["${TOPIC}"]
    starting: earliest
    max_offsets_per_trigger: 200
    format: {type: json, schema: "id BIGINT, amount DOUBLE"}
steps:
  priced: {sql: "SELECT id, amount, amount * 1.25 AS gross FROM orders"}
sinks:
  lake: {of: priced, type: delta, path: out/priced}
  db: {of: priced, type: postgres, url: "${PG_URL}", table: priced, create_table: true}
"""
CHECKPOINT = "storage/checkpoints/orders/priced/0001"


@pytest.fixture
def project(tmp_path, kafka, topic, postgres, pg, monkeypatch) -> Path:
    root = tmp_path / "crashes"
    place(root / "penstock.yaml", PROJECT)
    place(root / "pipelines/orders.yaml", PIPELINE)
    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    monkeypatch.setenv("TOPIC", topic(partitions=2))
    monkeypatch.setenv("PG_URL", postgres.url)
    return root


def more_records(servers: str, topic: str, first: int) -> None:
    produce(servers, topic, (json.dumps({"id": n, "amount": n / 4}) for n in range(first, first + RECORDS)))


@pytest.mark.covers("model.exactly-once", "recovery.crash")
def test_twenty_crashes_lose_no_id_and_repeat_none(project, kafka, pg, spark):
    dice = random.Random(4)
    for kill in range(KILLS):
        more_records(kafka.servers, os.environ["TOPIC"], kill * RECORDS)
        run_and_kill(project, [project / CHECKPOINT], 1.5, dice)
    run_to_the_end(project)
    assert last_commit(project / CHECKPOINT) > KILLS
    in_lake = Counter(row.id for row in spark.read.format("delta").load(str(project / "out/priced")).collect())
    in_db = Counter(row[0] for row in pg.execute("SELECT id FROM priced").fetchall())
    for found in (in_lake, in_db):
        assert set(found) == set(range(KILLS * RECORDS))
        assert {number for number, count in found.items() if count > 1} == set()
