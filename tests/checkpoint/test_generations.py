"""A checkpoint made ready for a start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.checkpoint import folders, reset
from penstock.checkpoint.generations import code_hashes, definition, prepare
from penstock.checkpoint.read import read_manifest
from penstock.facts.stored import CheckpointFacts
from penstock.pipeline.model import Pipeline
from penstock.problems import UserError
from penstock.query.state_store import FORMAT
from penstock.storage.storage import LocalStorage

Read = Callable[[str], Pipeline]

storage = LocalStorage()
TEXT = """\
pipeline: orders
sources:
  orders: {type: socket, host: "${HOST}", port: "${DB_PASSWORD:-9999}"}
  unused: {type: rate}
steps:
  unique: {python: "steps:unique"}
sinks: {out: {of: unique, type: files, path: out, format: json}}
queries: {unique: {mode: append}}
"""
SETTINGS = {"spark.sql.shuffle.partitions": "2"}


@pytest.fixture
def pipeline(tmp_path: Path, read: Read) -> Pipeline:
    (tmp_path / "steps.py").write_text("def unique(orders): ...\n")
    return read(TEXT)


def prepared(pipeline: Pipeline, root: Path, settings: dict[str, str] = SETTINGS) -> CheckpointFacts:
    (query,) = pipeline.queries
    return prepare(storage, str(root / "storage"), pipeline, query, root, "4.1.3", settings, {"orders": ("day",)})


def test_a_first_start_gets_an_identity_and_a_manifest(pipeline: Pipeline, tmp_path: Path) -> None:
    facts = prepared(pipeline, tmp_path)
    assert facts.path == str(tmp_path / "storage/checkpoints/orders/unique/0001")
    assert json.loads((Path(facts.path) / "metadata").read_text()) == {"id": facts.id}
    born = read_manifest(storage, folders.folder_of_query(str(tmp_path / "storage"), "orders", "unique"), 1)
    assert (born.id, born.settings, born.partition_columns) == (facts.id, SETTINGS, {"orders": ("day",)})
    assert set(born.code) == {"steps"}


def test_a_second_start_keeps_what_the_first_was_born_with(pipeline: Pipeline, tmp_path: Path) -> None:
    first = prepared(pipeline, tmp_path)
    second = prepared(pipeline, tmp_path, {"spark.sql.shuffle.partitions": "8"})
    assert (second.id, second.settings) == (first.id, SETTINGS)


def test_each_checkpoint_has_an_identity_of_its_own(pipeline: Pipeline, tmp_path: Path) -> None:
    one = prepared(pipeline, tmp_path)
    other = prepare(
        storage, str(tmp_path / "elsewhere"), pipeline, pipeline.queries[0], tmp_path, "4.1.3", SETTINGS, {}
    )
    assert one.id != other.id


def test_a_crash_before_the_manifest_leaves_a_checkpoint_that_was_never_started(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    first = prepared(pipeline, tmp_path)
    Path(f"{first.path}.json").unlink()
    second = prepared(pipeline, tmp_path)
    assert second.id != first.id
    assert json.loads((Path(second.path) / "metadata").read_text()) == {"id": second.id}


def test_a_renamed_query_goes_on_with_its_checkpoint(pipeline: Pipeline, read: Read, tmp_path: Path) -> None:
    first = prepared(pipeline, tmp_path)
    renamed = TEXT.replace("of: unique", "of: distinct").replace("  unique: {python", "  distinct: {python")
    second = prepared(read(renamed.replace("{unique: {mode: append}}", "{distinct: {was: unique}}")), tmp_path)
    assert second.id == first.id
    assert not Path(first.path).exists()
    assert second.path.endswith("orders/distinct/0001")


def test_a_former_name_without_checkpoint_is_a_first_start(read: Read, pipeline: Pipeline, tmp_path: Path) -> None:
    assert prepared(read(TEXT.replace("mode: append", "was: never")), tmp_path).generation == 1


def test_no_value_of_a_reference_stands_in_the_manifest(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST", "very-secret-host")
    facts = prepared(pipeline, tmp_path)
    text = Path(f"{facts.path}.json").read_text()
    assert "very-secret-host" not in text
    assert "${HOST}" in text


def test_the_definition_holds_what_the_query_is_made_of(pipeline: Pipeline) -> None:
    (query,) = pipeline.queries
    assert definition(pipeline, query) == {
        "nodes": {
            "orders": {"inputs": [], "spec": {"type": "socket", "host": "${HOST}", "port": "${DB_PASSWORD:-9999}"}},
            "unique": {"inputs": ["orders"], "spec": {"python": "steps:unique"}},
        },
        "sinks": {"out": {"type": "files", "path": "out", "format": {"type": "json"}}},
        "mode": "append",
    }


def test_the_hash_of_code_changes_with_it(pipeline: Pipeline, tmp_path: Path) -> None:
    (query,) = pipeline.queries
    before = code_hashes(pipeline, query, tmp_path)
    assert code_hashes(pipeline, query, tmp_path) == before
    (tmp_path / "steps.py").write_text("def unique(orders): return orders\n")
    assert code_hashes(pipeline, query, tmp_path) != before


def test_storage_that_cannot_be_written_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "storage").write_text("a file where a folder should be")
    with pytest.raises(UserError) as raised:
        prepared(pipeline, tmp_path)
    (problem,) = raised.value.problems
    assert (problem.code, str(problem.where)) == ("CHECKPOINT002", "pipeline.yaml:8:11")


def test_a_manifest_that_cannot_be_read_stops_the_start(pipeline: Pipeline, tmp_path: Path) -> None:
    facts = prepared(pipeline, tmp_path)
    Path(f"{facts.path}.json").write_text("{")
    with pytest.raises(UserError) as raised:
        prepared(pipeline, tmp_path)
    assert raised.value.problems[0].code == "CHECKPOINT004"


def test_a_generation_that_has_lost_its_manifest_gets_no_new_identity(pipeline: Pipeline, tmp_path: Path) -> None:
    facts = prepared(pipeline, tmp_path)
    manifest = Path(f"{facts.path}.json")
    manifest.unlink()
    assert prepared(pipeline, tmp_path).id != facts.id  # it was never started
    storage.write_text(f"{facts.path}/offsets/0", "v1\n{}\n-")
    manifest.unlink()
    with pytest.raises(UserError, match="CHECKPOINT021") as raised:
        prepared(pipeline, tmp_path)
    assert "penstock checkpoint reset orders.unique --from earliest" in str(raised.value)


def test_a_reset_keeps_the_old_generation_and_the_start_decides_settings(pipeline: Pipeline, tmp_path: Path) -> None:
    first = prepared(pipeline, tmp_path)
    folder = folders.folder_of_query(str(tmp_path / "storage"), "orders", "unique")
    seed = reset.Seed(4, "v1\n{}\n-", 'v1\n{"nextBatchWatermarkMs":7}')
    number, identity = reset.new_generation(storage, folder, "orders", "unique", seed)
    assert not read_manifest(storage, folder, number).is_started
    second = prepared(pipeline, tmp_path, {FORMAT: "2"})
    assert (second.generation, second.id, second.settings) == (2, identity, {FORMAT: "2"})
    assert (second.last_offset, second.last_commit) == (4, 4)
    assert storage.read_text(f"{second.path}/commits/4") == 'v2\n{"nextBatchWatermarkMs":7,"stateUniqueIds":{}}'
    assert Path(first.path).is_dir()
    assert prepared(pipeline, tmp_path, SETTINGS).settings == {FORMAT: "2"}


def test_a_reset_that_was_not_finished_stops_the_next_start(pipeline: Pipeline, tmp_path: Path) -> None:
    prepared(pipeline, tmp_path)
    folder = folders.folder_of_query(str(tmp_path / "storage"), "orders", "unique")
    number, identity = reset.new_generation(storage, folder, "orders", "unique", None, unfinished=True)
    with pytest.raises(UserError, match="CHECKPOINT027"):
        prepared(pipeline, tmp_path)
    reset.finish(storage, folder, number)
    assert prepared(pipeline, tmp_path).id == identity
