"""kill -9 of the running pipeline, at random moments: Kafka into Delta and PostgreSQL from one step."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import place
from tests.services import produce

pytestmark = [pytest.mark.spark, pytest.mark.services]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
KILLS = 20
RECORDS = 10_000
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
  lake: {of: priced, type: delta, path: out/orders}
  db: {of: priced, type: postgres, url: "${PG_URL}", table: orders, create_table: true}
"""


@pytest.fixture
def project(tmp_path, kafka, topic, postgres, pg, monkeypatch) -> Path:
    root = tmp_path / "crashes"
    place(root / "penstock.yaml", PROJECT)
    place(root / "pipelines/orders.yaml", PIPELINE)
    name = topic(partitions=2)
    produce(kafka.servers, name, (json.dumps({"id": n, "amount": n / 4}) for n in range(RECORDS)))
    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    monkeypatch.setenv("TOPIC", name)
    monkeypatch.setenv("PG_URL", postgres.url)
    return root


def last_commit(root: Path) -> int:
    folder = root / "storage/checkpoints/orders/priced/0001/commits"
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return max(numbers, default=-1)


def jvm_of(process: subprocess.Popen[bytes]) -> int | None:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else None


@pytest.mark.covers("model.exactly-once", "recovery.crash")
def test_twenty_crashes_lose_no_id_and_repeat_none(project, pg, spark):
    dice = random.Random(4)
    for kill in range(KILLS):
        before = last_commit(project)
        with (project / "run.log").open("w") as log:
            process = subprocess.Popen([PENSTOCK, "run"], cwd=project, stdout=log, stderr=log)
        deadline = time.monotonic() + 180
        while last_commit(project) <= before:
            said = (project / "run.log").read_text()
            assert process.poll() is None, f"ended by itself before kill {kill}: {said}"
            assert time.monotonic() < deadline, f"no batch was committed before kill {kill}: {said}"
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 1.5))
        jvm = jvm_of(process)
        process.kill()
        if jvm is not None and dice.random() < 0.5:  # the machine, and not only the driver, is gone
            os.kill(jvm, signal.SIGKILL)
        process.wait()
    ended = subprocess.run(
        [PENSTOCK, "run", "--once", "--json"], cwd=project, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    in_lake = Counter(row.id for row in spark.read.format("delta").load(str(project / "out/orders")).collect())
    in_db = Counter(row[0] for row in pg.execute("SELECT id FROM orders").fetchall())
    assert last_commit(project) > KILLS
    for found in (in_lake, in_db):
        assert set(found) == set(range(RECORDS))
        assert {number for number, count in found.items() if count > 1} == set()
