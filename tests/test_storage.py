"""Small files on the local disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.storage.batch_log import batches, newest_batch
from penstock.storage.storage import LocalStorage, join

storage = LocalStorage()


def test_writes_whole_files_with_the_folders_above_and_leaves_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "metadata"
    storage.write_text(str(file), "{}")
    storage.write_text(f"file:{file}", "{'id': 'é'}")
    assert storage.read_text(str(file)) == "{'id': 'é'}"
    assert [entry.name for entry in storage.entries(str(file.parent))] == ["metadata"]


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "metadata"
    storage.write_text(str(file), "old")
    with pytest.raises(UnicodeEncodeError):
        storage.write_text(str(file), "new \udcff")
    assert file.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["metadata"]


def test_lists_a_folder_by_name_and_a_missing_one_as_empty(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / "a").mkdir()
    os.utime(tmp_path / "b.txt", (1_000, 1_000.5))
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    folder, file = storage.entries(str(tmp_path))
    assert (folder.name, folder.is_folder) == ("a", True)
    assert (file.name, file.is_folder, file.size, file.modified_ms) == ("b.txt", False, 5, 1_000_500)
    assert file.path == str(tmp_path / "b.txt")
    assert storage.entries(str(tmp_path / "none")) == []
    assert storage.entries(str(tmp_path / "b.txt")) == []


@pytest.mark.parametrize(
    ("pattern", "exists"),
    [("in", True), ("in/a.csv", True), ("none", False), ("in/*.csv", True), ("in/*.json", False), ("*/a.csv", True)],
)
def test_sees_paths_and_globs(tmp_path: Path, pattern: str, exists: bool) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    assert storage.exists(str(tmp_path / pattern)) is exists


def test_tells_files_from_folders(tmp_path: Path) -> None:
    storage.make_folder(str(tmp_path / "x" / "y"))
    storage.make_folder(str(tmp_path / "x" / "y"))
    (tmp_path / "f").touch()
    assert storage.is_file(str(tmp_path / "f"))
    assert not storage.is_file(str(tmp_path / "x"))


def test_renames_into_folders_that_are_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "f").write_text("x")
    storage.rename(str(tmp_path / "old"), str(tmp_path / "deep" / "new"))
    assert (tmp_path / "deep" / "new" / "f").read_text() == "x"
    assert not (tmp_path / "old").exists()


def test_removes_a_folder_with_all_that_is_in_it(tmp_path: Path) -> None:
    storage.write_text(str(tmp_path / "x" / "y" / "f"), "")
    for _ in range(2):
        storage.remove(str(tmp_path / "x"))
        assert list(tmp_path.iterdir()) == []


def test_joins_with_one_slash() -> None:
    assert join("s3a://bucket/", "a", "b") == "s3a://bucket/a/b"
    assert join("/storage", "checkpoints") == "/storage/checkpoints"


def test_the_newest_batch_of_a_log_is_the_greatest_number(tmp_path: Path) -> None:
    for name in ("2", "10", "9", ".11.tmp", "12.crc"):
        (tmp_path / name).write_text("")
    assert sorted(batches(storage, str(tmp_path))) == [2, 9, 10]
    assert newest_batch(storage, str(tmp_path)) == 10
    assert newest_batch(storage, str(tmp_path / "none")) is None
