"""A checkpoint's folders, manifest and logs on disk → facts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint import folders, manifest, read
from penstock.checkpoint.manifest import Manifest
from penstock.facts.stored import CheckpointFacts, ReadFile
from penstock.problems import UserError
from penstock.storage.storage import LocalStorage

storage = LocalStorage()
BORN = Manifest(
    pipeline="orders",
    query="spent",
    id="6f1c",
    born="2026-01-31T00:00:00+00:00",
    penstock="0.1.0",
    spark="4.1.3",
    settings={"spark.sql.shuffle.partitions": "2"},
    partition_columns={"orders": ("day", "city")},
    code={"steps": "abc"},
    definition={"mode": "append"},
)


def write(file: Path, text: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_checkpoints_lie_by_pipeline_query_and_generation() -> None:
    folder = folders.folder_of_query("s3a://bucket/storage/", "orders", "spent")
    assert folder == "s3a://bucket/storage/checkpoints/orders/spent"
    assert folders.generation_folder(folder, 7) == f"{folder}/0007"
    assert folders.manifest_file(folder, 7) == f"{folder}/0007.json"


def test_a_generation_counts_once_it_has_a_manifest(tmp_path: Path) -> None:
    for name in ("0001.json", "0002.json", "0010.json", "draft.json", ".0003.json", "0004.txt"):
        write(tmp_path / "spent" / name)
    (tmp_path / "spent" / "0011").mkdir()
    (tmp_path / "never_started" / "0001").mkdir(parents=True)
    write(tmp_path / "a_file")
    assert folders.generations_in(storage, str(tmp_path / "spent")) == (1, 2, 10)
    assert folders.queries_in(storage, str(tmp_path)) == ("spent",)
    assert folders.queries_in(storage, str(tmp_path / "none")) == ()


def test_a_manifest_comes_back_as_it_was_written() -> None:
    assert manifest.from_text(BORN.to_text(), "0001.json") == BORN


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "5", "{}", '{"format": 1}', '{"format": 2}', '{"format": 1, "partition_columns": 5}',
     BORN.to_text().replace('"format": 2', '"format": 99'), BORN.to_text().replace('"query"', '"queri"')],
)  # fmt: skip
def test_what_is_no_manifest_is_told(text: str) -> None:
    with pytest.raises(UserError) as raised:
        manifest.from_text(text, "0001.json")
    (problem,) = raised.value.problems
    assert problem.code == "CHECKPOINT004"
    assert "0001.json" in problem.message


@given(st.text())
def test_any_text_is_no_manifest_but_a_problem(text: str) -> None:
    with pytest.raises(UserError, match="CHECKPOINT004"):
        manifest.from_text(text, "0001.json")


def test_a_query_that_never_ran_has_no_checkpoint(tmp_path: Path) -> None:
    assert read.checkpoint(storage, str(tmp_path / "spent"), "spent") is None


def test_reads_the_newest_generation(tmp_path: Path) -> None:
    write(tmp_path / "0001.json", BORN.to_text())
    write(tmp_path / "0002.json", BORN.to_text().replace("6f1c", "77aa"))
    for log, batches in {"offsets": (0, 9, 10), "commits": (0, 9)}.items():
        for batch in batches:
            write(tmp_path / "0002" / log / str(batch))
            write(tmp_path / "0002" / log / f".{batch}.crc")
    found = read.checkpoint(storage, str(tmp_path), "spent")
    assert found == CheckpointFacts(
        query="spent",
        generation=2,
        path=str(tmp_path / "0002"),
        id="77aa",
        settings=BORN.settings,
        partition_columns=BORN.partition_columns,
        last_offset=10,
        last_commit=9,
    )
    assert found.batch_under_way == 10
    assert read.batch_under_way(storage, str(tmp_path / "0002")) == 10


@pytest.mark.parametrize(
    ("offsets", "commits", "under_way"), [([], [], None), ([0], [], 0), ([0, 1], [0, 1], None), ([0, 1], [0], 1)]
)
def test_a_batch_is_under_way_between_its_offsets_and_its_commit(
    tmp_path: Path, offsets: list[int], commits: list[int], under_way: int | None
) -> None:
    for batch in offsets:
        write(tmp_path / "offsets" / str(batch))
    for batch in commits:
        write(tmp_path / "commits" / str(batch))
    assert read.batch_under_way(storage, str(tmp_path)) == under_way


def test_read_files_are_compared_with_the_disk(tmp_path: Path) -> None:
    data = tmp_path / "in put"
    write(data / "same.csv", "1")
    write(data / "grown.csv", "1")
    os.utime(data / "same.csv", ns=(0, 1_700_000_000_123_999_999))
    os.utime(data / "grown.csv", ns=(0, 1_700_000_009_000_000_000))

    def entry(path: str, batch: int) -> str:
        return json.dumps({"path": path, "timestamp": 1_700_000_000_123, "batchId": batch})

    url = f"file://{data}".replace(" ", "%20")
    sources = tmp_path / "checkpoint" / "sources" / "0"
    write(sources / "0", "\n".join(["v1", entry(f"{url}/gone.csv", 0), entry("s3a://bucket/x.csv", 0)]))
    write(sources / "1", "\n".join(["v1", entry(f"{url}/same.csv", 1)]))
    write(sources / "2.compact", "\n".join(["v1", entry(f"{url}/grown.csv", 2)]))
    write(sources / ".1.crc")
    assert list(read.read_files(storage, str(tmp_path / "checkpoint"))) == [
        ReadFile(str(data / "grown.csv"), 1_700_000_000_123, 2, 1_700_000_009_000),
        ReadFile(str(data / "same.csv"), 1_700_000_000_123, 1, 1_700_000_000_123),
        ReadFile(str(data / "gone.csv"), 1_700_000_000_123, 0, None),
    ]
