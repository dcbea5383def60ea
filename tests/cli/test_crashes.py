"""kill -9 of a running pipeline, at random moments: Kafka into Delta and PostgreSQL from one step.

To start Spark takes longest. So the pipeline has four queries of this kind: a kill takes each of them at a moment of
its own, and five kills are twenty crashes.
"""

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
QUERIES = ("priced",)
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
"""
STEP = '  {name}: {{sql: "SELECT id, amount, amount * 1.25 AS gross FROM orders"}}\n'
SINKS = """\
  {name}_lake: {{of: {name}, type: delta, path: out/{name}}}
  {name}_db: {{of: {name}, type: postgres, url: "${{PG_URL}}", table: {name}, create_table: true}}
"""


@pytest.fixture
def project(tmp_path, kafka, topic, postgres, pg, monkeypatch) -> Path:
    root = tmp_path / "crashes"
    place(root / "penstock.yaml", PROJECT)
    steps, sinks = ("".join(text.format(name=name) for name in QUERIES) for text in (STEP, SINKS))
    place(root / "pipelines/orders.yaml", f"{PIPELINE}{steps}sinks:\n{sinks}")
    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    monkeypatch.setenv("TOPIC", topic(partitions=2))
    monkeypatch.setenv("PG_URL", postgres.url)
    return root


def last_commits(root: Path) -> list[int]:
    """Of each query."""
    folders = [root / "storage/checkpoints/orders" / name / "0001/commits" for name in QUERIES]
    names = [[path.name for path in folder.iterdir()] if folder.is_dir() else [] for folder in folders]
    return [max((int(name) for name in found if name.isdigit()), default=-1) for found in names]


def more_records(servers: str, topic: str, first: int) -> None:
    produce(servers, topic, (json.dumps({"id": n, "amount": n / 4}) for n in range(first, first + RECORDS)))


def jvm_of(process: subprocess.Popen[bytes]) -> int | None:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else None


@pytest.mark.covers("model.exactly-once", "recovery.crash")
def test_twenty_crashes_lose_no_id_and_repeat_none(project, kafka, pg, spark):
    dice = random.Random(4)
    for kill in range(KILLS):
        more_records(kafka.servers, os.environ["TOPIC"], kill * RECORDS)
        before = last_commits(project)
        with (project / "run.log").open("w") as log:
            process = subprocess.Popen([PENSTOCK, "run"], cwd=project, stdout=log, stderr=log)
        deadline = time.monotonic() + 240
        while any(now <= then for now, then in zip(last_commits(project), before, strict=True)):
            said = (project / "run.log").read_text()
            assert process.poll() is None, f"ended by itself before kill {kill}: {said}"
            assert time.monotonic() < deadline, f"a query committed no batch before kill {kill}: {said}"
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
    assert min(last_commits(project)) > KILLS
    for name in QUERIES:
        in_lake = Counter(row.id for row in spark.read.format("delta").load(str(project / "out" / name)).collect())
        in_db = Counter(row[0] for row in pg.execute(f"SELECT id FROM {name}").fetchall())
        for found in (in_lake, in_db):
            assert set(found) == set(range(KILLS * RECORDS))
            assert {number for number, count in found.items() if count > 1} == set()
