"""Sinks against the checkpoint."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.plan.sinks import CheckpointProgress, SinkFacts, holding_findings
from penstock.sinks.held import Holding, claim_folder, held_by_delta, held_by_folder
from penstock.storage.storage import LocalStorage

storage = LocalStorage()
PROGRESS = CheckpointProgress("orders.spent", "id-1", last_commit=6, last_offset=6, path="storage/0001")
SINK = SinkFacts("out", "delta", "out/spent", last_batch=6, identity="t-1", remembered="t-1")


@pytest.mark.parametrize(
    ("commit", "offset", "batch"),
    [(6, 6, 6), (6, 7, 7), (6, 7, 6), (6, 6, 5), (6, 6, None), (None, 0, 0), (None, None, None)],
)
def test_a_sink_that_is_not_ahead_is_well(commit: int | None, offset: int | None, batch: int | None) -> None:
    """Also the one batch that a crash leaves between the sink's commit and Spark's."""
    progress = replace(PROGRESS, last_commit=commit, last_offset=offset)
    assert holding_findings(progress, [replace(SINK, last_batch=batch)]) == []


@pytest.mark.parametrize(
    ("commit", "offset", "batch", "said"),
    [
        (6, 6, 7, "ends with batch 6: the next batch would be skipped"),
        (6, 7, 9, "ends with batch 7: the next 2 batches would be skipped"),
        (None, None, 3, "has no batch: the next 4 batches would be skipped"),
    ],
)
def test_a_sink_that_is_ahead_refuses(commit: int | None, offset: int | None, batch: int, said: str) -> None:
    progress = replace(PROGRESS, last_commit=commit, last_offset=offset)
    (finding,) = holding_findings(progress, [replace(SINK, last_batch=batch)])
    assert (finding.code, finding.verdict, finding.node) == ("LEDGER002", "refuse", "out")
    assert said in finding.message
    assert "`penstock checkpoint reset orders.spent --from earliest`" in finding.fix


@pytest.mark.parametrize(("identity", "there", "said"), [("t-2", True, "another one now"), (None, False, "is gone")])
def test_another_table_restarts(identity: str | None, there: bool, said: str) -> None:
    facts = replace(SINK, identity=identity, is_there=there, last_batch=None)
    (finding,) = holding_findings(PROGRESS, [facts])
    assert (finding.code, finding.verdict) == ("LEDGER003", "restart")
    assert said in finding.message
    # Before the first batch nothing can be missing in it.
    assert holding_findings(replace(PROGRESS, last_commit=None, last_offset=None), [facts]) == []


def test_the_log_of_another_query_refuses() -> None:
    folder = SinkFacts("out", "files", "out/spent", last_batch=3, owner="id-0")
    (finding,) = holding_findings(PROGRESS, [folder])
    assert (finding.code, finding.verdict) == ("LEDGER004", "refuse")
    assert holding_findings(PROGRESS, [replace(folder, owner="id-1")]) == []
    assert holding_findings(PROGRESS, [replace(folder, owner=None)]) == []
    assert holding_findings(PROGRESS, [replace(folder, last_batch=None)]) == []


def test_a_folder_holds_the_newest_batch_of_its_log(tmp_path: Path) -> None:
    assert held_by_folder(storage, str(tmp_path / "none")) == Holding(is_there=False)
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for name in ("0", "9.compact", "10", ".10.crc"):
        (log / name).write_text("v1")
    assert held_by_folder(storage, str(tmp_path)) == Holding(10)
    claim_folder(storage, str(tmp_path), "id-1")
    assert held_by_folder(storage, str(tmp_path)) == Holding(10, owner="id-1")


def commit(table: Path, version: int, *actions: dict[str, object]) -> None:
    file = table / "_delta_log" / f"{version:020d}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions))


def test_the_log_of_a_delta_table_names_the_newest_batch_of_a_query(tmp_path: Path) -> None:
    table = tmp_path / "table"
    assert held_by_delta(storage, str(table), "id-1") == Holding(is_there=False)
    commit(table, 0, {"commitInfo": {}}, {"metaData": {"id": "t-1"}})
    assert held_by_delta(storage, str(table), "id-1") == Holding(None, "t-1")
    commit(table, 1, {"txn": {"appId": "id-1", "version": 3}}, {"add": {"path": "a"}})
    commit(table, 2, {"txn": {"appId": "id-0", "version": 9}})
    assert held_by_delta(storage, str(table), "id-1") == Holding(3, "t-1")


def test_a_checkpoint_of_a_delta_table_stands_for_older_commits(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = tmp_path / "table"
    commit(table, 11, {"txn": {"appId": "id-0", "version": 4}})
    rows = pa.table({
        "txn": [{"appId": "id-1", "version": 7}, None],
        "metaData": [None, {"id": "t-1"}],
    })  # fmt: skip
    pq.write_table(rows, table / "_delta_log" / f"{10:020d}.checkpoint.parquet")
    assert held_by_delta(storage, str(table), "id-1") == Holding(7, "t-1")
