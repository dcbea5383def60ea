"""Queries that start again by themselves."""

from __future__ import annotations

import threading

import pytest

from penstock.supervise.query_view import Snapshot
from penstock.supervise.stopping import Stop
from tests.conftest import place
from tests.sources.conftest import wait_for

pytestmark = pytest.mark.spark

ENRICHED = """
pipeline: enriched
latency: low
sources:
  orders: {type: files, path: in, format: {type: csv, schema: "id BIGINT, city STRING"}}
  cities:
    type: files
    path: cities
    format: {type: csv, schema: "city STRING, region STRING"}
    read: static
    refresh: REFRESH
steps:
  placed: {sql: "SELECT id, region FROM orders JOIN cities USING (city)"}
sinks:
  out: {of: placed, type: files, path: out, format: json}
"""


def test_a_static_folder_is_refreshed_by_a_restart(project_at, run_once, spark):
    root = project_at(
        ENRICHED.replace("REFRESH", "1 second"), files={"in/1.csv": "1,Oslo\n", "cities/a.csv": "Oslo,north\n"}
    )

    stop, seen = Stop(), list[Snapshot]()

    def restarts() -> int:
        return seen[-1].queries[0].restarts

    def change() -> None:
        committed = root / "out/_spark_metadata"
        wait_for((committed / "0").exists)
        (root / "cities/a.csv").unlink()
        place(root / "cities/b.csv", "Oslo,top\n")
        before = restarts()
        wait_for(lambda: restarts() > before + 1)  # the one after the next begins when the change is over
        place(root / "in/2.csv", "2,Oslo\n")
        wait_for((committed / "1").exists)
        stop.ask()

    threading.Thread(target=change, daemon=True).start()
    result = run_once(root, once=False, for_seconds=600, stop=stop, on_snapshot=seen.append)
    assert result.ok, result.problems
    assert result.queries[0].restarts >= 1
    rows = {row.id: row.region for row in spark.read.json(str(root / "out")).collect()}
    assert rows == {1: "north", 2: "top"}


def test_files_cannot_be_refreshed_for_every_batch(judged):
    assert [problem.code for problem in judged(ENRICHED.replace("REFRESH", "batch"))] == ["SPEC009"]


def test_a_stream_needs_no_refresh(judged):
    text = ENRICHED.replace("REFRESH", "3 seconds").replace("    read: static\n", "")
    assert [problem.code for problem in judged(text)] == ["SPEC009"]
