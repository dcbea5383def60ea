"""Formats and catalogs whose jars are fetched on demand, each written and read back by processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import place
from tests.engine.conftest import QUICK_JAVA

pytestmark = pytest.mark.services

SETTINGS = """
name: lakes
spark: {spark.master: 'local[2]'}
catalogs:
  lake: {type: iceberg, warehouse: lake}
  spark_catalog: {type: hive}
"""
WRITERS = """
pipeline: writers
latency: low
sources: {numbers: {type: files, path: in, format: {type: csv, schema: 'id BIGINT, name STRING'}}}
steps:
  for_delta: {sql: SELECT * FROM numbers}
  for_iceberg: {sql: SELECT * FROM numbers}
  for_hive: {sql: SELECT * FROM numbers}
  for_avro: {sql: SELECT * FROM numbers}
sinks:
  delta: {of: for_delta, type: spark, format: delta, path: tables/delta}
  iceberg: {of: for_iceberg, type: table, table: lake.shop.numbers}
  hive: {of: for_hive, type: table, table: numbers_kept}
  avro: {of: for_avro, type: spark, format: avro, path: tables/avro}
"""
READERS = """
pipeline: readers
latency: low
sources:
  delta: {type: spark, format: delta, path: tables/delta}
  iceberg: {type: table, table: lake.shop.numbers}
  hive: {type: table, table: default.numbers_kept}
  avro: {type: spark, format: avro, path: tables/avro, schema: 'id BIGINT, name STRING'}
sinks:
  from_delta: {of: delta, type: files, path: out/delta, format: {type: csv}}
  from_iceberg: {of: iceberg, type: files, path: out/iceberg, format: {type: csv}}
  from_hive: {of: hive, type: files, path: out/hive, format: {type: csv}}
  from_avro: {of: avro, type: files, path: out/avro, format: {type: csv}}
"""
KINDS = ("delta", "iceberg", "hive", "avro")


TWICE = """
import json
import sys
from dataclasses import replace
from pathlib import Path

from penstock.actions.run import RunOptions, run
from penstock.engine import session
from penstock.supervise.stopping import Stop

started = []


def start(project, connectors, settings):
    if not started:
        started.append(session.start(project.name, settings, project.local_folder, connectors))
    return replace(started[0], jvm=None)


for _ in range(2):
    ended = run(Path(sys.argv[1]), (), None, RunOptions(once=True), start, Stop(), lambda seen: None, lambda line: None)
    print(json.dumps(ended.to_json()))
started[0].close()
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory, penstock_json) -> tuple[Path, list[dict[str, Any]]]:
    """One process writes; the next runs everything twice: it reads what was written, and then finds nothing new."""
    root = tmp_path_factory.mktemp("lakes")
    place(root / "penstock.yaml", SETTINGS)
    place(root / "pipelines/writers.yaml", WRITERS)
    place(root / "pipelines/readers.yaml", READERS)
    place(root / "in/1.csv", "1,one\n2,two\n")
    (root / "tables/delta").mkdir(parents=True)
    (root / "tables/avro").mkdir()
    first = penstock_json(root, "run", "--once", "writers")
    command = [sys.executable, "-c", TWICE, root]
    again = subprocess.run(command, env=QUICK_JAVA, capture_output=True, text=True, timeout=900, check=False)
    assert again.returncode == 0, again.stderr
    return root, [first, *map(json.loads, again.stdout.splitlines())]


def rows_in(runs: list[dict[str, Any]], query: str) -> list[int]:
    return [found["rows_in"] for run in runs for found in run["queries"] if found["query"] == query]


def test_all_runs_end_well(runs):
    assert [run["problems"] for run in runs[1]] == [[], [], []]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_back_once(runs, kind):
    root, ended = runs
    assert rows_in(ended, f"for_{kind}") == [2, 0, 0]
    assert rows_in(ended, kind) == [2, 0]
    read = [line for part in (root / "out" / kind).glob("part-*") for line in part.read_text().split()]
    assert sorted(read) == ["1,one", "2,two"]


def test_nothing_is_kept_outside_of_the_project_or_where_nobody_looks(runs):
    root, _ = runs
    kept = {path.name for path in root.iterdir()}
    assert kept == {
        ".penstock",
        "in",
        "lake",
        "metastore_db",
        "out",
        "penstock.yaml",
        "pipelines",
        "storage",
        "tables",
        "warehouse",
    }
