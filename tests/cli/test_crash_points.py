"""A crash at each named point, on purpose: a power cut for the JVM and the driver, then the next start.

One project, a row of starts, each with another crash point, then one run to the end.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from penstock.checkpoint.gaps import missing
from penstock.crash_points import POINTS, parse
from penstock.problems import UserError
from tests.conftest import place
from tests.kills import run_to_crash, run_to_the_end, written
from tests.services import LiveRecords, consume, produce

RECORDS = 60
"""That come before each start; a batch has at most 40 of them."""
KEYS = 7
PROJECT = """\
name: crashes
secrets: [PG_URL]
spark:
  spark.master: local[2,4]
  # A process that lives for seconds is up sooner without Java's second compiler.
  spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
  spark.databricks.delta.snapshotPartitions: 1
  # For sixty rows, generating and compiling Java code is most of a batch's work.
  spark.sql.codegen.wholeStage: false
  spark.sql.codegen.factoryMode: NO_CODEGEN
"""
ORDERS = """\
pipeline: orders
latency: low
sources:
  orders:
    type: kafka
    servers: ${KAFKA_SERVERS}
    topics: ["${TOPIC}"]
    starting: earliest
    max_offsets_per_trigger: 40
    format: {type: json, schema: "id BIGINT, amount DOUBLE"}
steps:
  priced: {sql: "SELECT id, amount, amount * 1.25 AS gross FROM orders"}
sinks:
  lake: {of: priced, type: delta, path: out/priced}
  db: {of: priced, type: postgres, url: "${PG_URL}", table: priced, create_table: true}
"""
QUICK = f"""\
pipeline: quick
latency: low
sources:
  orders:
    type: kafka
    servers: ${{KAFKA_SERVERS}}
    topics: ["${{LIVE}}"]
    starting: earliest
    format: {{type: json, schema: "id BIGINT"}}
steps:
  copies: {{sql: "SELECT id FROM orders"}}
  counts: {{sql: "SELECT id % {KEYS} AS key, count(*) AS n FROM orders GROUP BY id % {KEYS}"}}
sinks:
  copied: {{of: copies, type: kafka, servers: "${{KAFKA_SERVERS}}", topic: "${{COPIED}}"}}
  counted: {{of: counts, type: kafka, servers: "${{KAFKA_SERVERS}}", topic: "${{COUNTED}}", key: [key]}}
queries: {{counts: {{mode: update}}}}
"""
OF_ORDERS = {
    "after_offset_log": (0, 0),
    "in_task": (1, 0),
    "before_sink_commit": (1, 0),
    "between_sinks": (1, 0),
    "after_sink_commit:2": (1, 1),
    "before_commit_log": (1, 1),
}
"""By point, whether the lake and the database have the batch that the commit log lacks."""
OF_QUICK = ("in_task", "before_commit_log", "unwritten_progress")
A_HANDFUL = (("in_task", "between_sinks", "before_commit_log"), OF_QUICK)
"""Each start takes ten seconds. Other points crash in process: `tests/supervise/test_crash_points.py`."""


@pytest.fixture
def project(tmp_path, kafka, topic, postgres, pg, monkeypatch) -> Path:
    root = tmp_path / "crashes"
    place(root / "penstock.yaml", PROJECT)
    place(root / "pipelines/orders.yaml", ORDERS)
    place(root / "pipelines/quick.yaml", QUICK)
    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    monkeypatch.setenv("TOPIC", topic(partitions=2))
    monkeypatch.setenv("LIVE", topic(partitions=2))
    monkeypatch.setenv("COPIED", topic())
    monkeypatch.setenv("COUNTED", topic())
    monkeypatch.setenv("PG_URL", postgres.url)
    return root


def written_by_lake(table: Path) -> int:
    """The newest batch that the Delta table notes; -1 before the first."""
    lines = [line for commit in (table / "_delta_log").glob("*.json") for line in commit.read_text().splitlines()]
    return max((note["txn"]["version"] for line in lines if "txn" in (note := json.loads(line))), default=-1)


def written_by_db(pg) -> int:
    found = pg.execute("SELECT max(batch) FROM penstock_ledger.ledger WHERE sink = 'db'").fetchone()[0]
    return -1 if found is None else found


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.covers("model.exactly-once", "recovery.crash", "async.progress")
@pytest.mark.parametrize(
    ("of_orders", "of_quick"),
    [
        pytest.param(*A_HANDFUL, id="handful"),
        pytest.param(tuple(OF_ORDERS), OF_QUICK, id="all", marks=pytest.mark.proof),
    ],
)
def test_no_crash_point_loses_or_repeats_what_is_promised(project, kafka, pg, spark, of_orders, of_quick):
    checkpoints = project / "storage/checkpoints"
    orders, copies = checkpoints / "orders/priced/0001", checkpoints / "quick/copies/0001"
    pg.execute("DROP SCHEMA IF EXISTS penstock_ledger CASCADE")
    given = 0
    for point in of_orders:
        lake, db = OF_ORDERS[point]
        ids = range(given, given := given + RECORDS)
        produce(kafka.servers, os.environ["TOPIC"], (json.dumps({"id": n, "amount": n / 4}) for n in ids))
        run_to_crash(project, point, "--once", "orders")
        lost = max(written(orders, "offsets"))
        assert max(written(orders, "commits"), default=-1) == lost - 1, point
        has = (written_by_lake(project / "out/priced"), written_by_db(pg))
        assert has == (lost if lake else lost - 1, lost if db else lost - 1), point
    with LiveRecords(kafka.servers, os.environ["LIVE"]) as live:
        for point in of_quick:
            run_to_crash(project, point, "quick")
    run_to_the_end(project)

    in_lake = Counter(row.id for row in spark.read.format("delta").load(str(project / "out/priced")).collect())
    in_db = Counter(row[0] for row in pg.execute("SELECT id FROM priced").fetchall())
    assert in_lake == in_db == Counter(range(given))
    copied = Counter(json.loads(message.value())["id"] for message in consume(kafka.servers, os.environ["COPIED"]))
    assert set(copied) == set(range(live.count))
    seen = defaultdict[int, list[int]](list)
    for message in consume(kafka.servers, os.environ["COUNTED"]):
        row = json.loads(message.value())
        seen[row["key"]].append(row["n"])
    assert {key: numbers[-1] for key, numbers in seen.items()} == Counter(n % KEYS for n in range(live.count))
    # A batch that is run again gives what it gave before: no count ever goes back.
    assert all(numbers == sorted(numbers) for numbers in seen.values())
    assert not missing(written(copies, "offsets"), written(copies, "commits")), "`run --once` closes the gap"


@pytest.mark.parametrize(("text", "fix"), [("between_sink", "between_sinks"), ("in_task:0", "in_task:2")])
def test_a_wrong_crash_point_is_a_problem_that_lists_the_right_ones(text, fix):
    with pytest.raises(UserError) as told:
        parse(text)
    (problem,) = told.value.problems
    assert problem.code == "CRASH001"
    assert fix in problem.fix


def test_a_point_may_name_the_time_that_it_is_reached():
    assert parse("in_task").turn == 1
    assert parse("in_task:3").turn == 3


def test_the_page_names_every_crash_point():
    page = (Path(__file__).parents[2] / "docs/how-to/test-crashes.md").read_text(encoding="utf-8")
    assert [point for point in POINTS if f"| `{point}` | {POINTS[point]} |" not in page] == []
