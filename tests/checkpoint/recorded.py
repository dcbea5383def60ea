"""Checkpoints that Spark has written, one for each kind of state store: recorded once, then copied and damaged."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from penstock.actions.run import RunOptions, run
from penstock.prepare.needs import StartEngine
from penstock.problems import errors_in
from penstock.supervise.stopping import Stop

BATCHES = 13
"""More than ten, so that logs and state have been compacted."""
STORES = {
    "hdfs": "{store: hdfs}",
    "rocksdb": "{store: rocksdb, format: 1, changelog: false}",
    "changelog": "{store: rocksdb, format: 1, snapshot_after: 3}",
    "lineage": "{store: rocksdb, format: 2, snapshot_after: 3}",
}
"""By name, where the query of that name keeps its state."""
PIPELINE = """\
pipeline: recorded
sources:
  orders:
    type: files
    path: {data}/orders
    format: {{type: json, schema: "id LONG, k STRING, at TIMESTAMP"}}
    max_files_per_trigger: 1
    watermark: {{column: at, delay: 1 minute}}
steps:
  plain: {{sql: "SELECT id, k FROM orders"}}
  hdfs: {{sql: "SELECT k, count(*) AS n FROM orders GROUP BY k"}}
  rocksdb: {{sql: "SELECT k, count(*) AS n FROM orders GROUP BY k"}}
  changelog: {{sql: "SELECT k, count(*) AS n FROM orders GROUP BY k"}}
  lineage: {{sql: "SELECT k, count(*) AS n FROM orders GROUP BY k"}}
  joined: {{sql: "SELECT a.id, b.k FROM orders a JOIN orders b ON a.id = b.id AND a.at >= b.at - INTERVAL 1 MINUTE"}}
sinks:
  plain_out: {{of: plain, type: files, path: out/plain, format: json}}
  hdfs_out: {{of: hdfs, type: python, each_batch: "kept:keep"}}
  rocksdb_out: {{of: rocksdb, type: python, each_batch: "kept:keep"}}
  changelog_out: {{of: changelog, type: python, each_batch: "kept:keep"}}
  lineage_out: {{of: lineage, type: python, each_batch: "kept:keep"}}
  joined_out: {{of: joined, type: python, each_batch: "kept:keep"}}
queries:
"""
CODE = '''\
"""Keeps each batch in a file of its own, written whole: a batch that runs again replaces itself."""
import json
import pathlib

def keep(rows, batch):
    folder = pathlib.Path(__file__).parent / "out" / batch.sink
    folder.mkdir(parents=True, exist_ok=True)
    lines = sorted(json.dumps(row.asDict(), default=str) for row in rows.collect())
    (folder / str(batch.number)).write_text("\\n".join(lines))
'''


@dataclass(frozen=True)
class Recorded:
    """A project whose queries have committed some batches, in order."""

    root: Path

    def checkpoint(self, query: str) -> Path:
        return self.root / "storage" / "checkpoints" / "recorded" / query / "0001"

    def copied(self, to: Path) -> Recorded:
        """The same project at another place. It reads the same source files, whose paths are absolute."""
        shutil.copytree(self.root, to)
        return Recorded(to)


def record(root: Path, data: Path, start_engine: StartEngine) -> Recorded:
    for number in range(BATCHES):
        add_file(data, number)
    text = PIPELINE.format(data=data)
    for name, state in STORES.items():
        text += f"  {name}: {{mode: update, state: {state}}}\n"
    text += "  joined: {state: {store: rocksdb, format: 2, snapshot_after: 3}}\n"
    (root / "pipelines").mkdir(parents=True)
    (root / "penstock.yaml").write_text("name: test\nspark: {spark.sql.shuffle.partitions: 2}\n")
    (root / "pipelines" / "recorded.yaml").write_text(dedent(text))
    (root / "kept.py").write_text(CODE)
    run_again(Recorded(root), start_engine)
    return Recorded(root)


def add_file(data: Path, number: int) -> None:
    file = data / "orders" / f"{number:03d}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"id": number, "k": f"key{number % 3}", "at": f"2026-01-01T00:{number:02d}:00Z"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    moment = 1_767_225_600 + number
    os.utime(file, (moment, moment))  # Spark reads the oldest first


def run_again(project: Recorded, start_engine: StartEngine, *selection: str) -> None:
    result = run(
        project.root, selection, None, RunOptions(once=True), start_engine, Stop(), lambda _: None, lambda _: None
    )
    assert not errors_in(result.problems), result.problems
