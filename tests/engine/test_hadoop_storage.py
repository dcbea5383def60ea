"""One behaviour of two storages: the local disk, and Hadoop's file systems, one of them not `file:`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.storage.hadoop import HadoopStorage
from penstock.storage.storage import LocalStorage, Storage, join

pytestmark = pytest.mark.spark


@pytest.fixture(params=["local", "local URL", "hadoop", "viewfs"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def storage(kind, root, spark) -> Storage:
    # After the mount: a storage takes Hadoop's settings as they are when it is made.
    return LocalStorage() if kind.startswith("local") else HadoopStorage(spark)


@pytest.fixture
def root(kind, spark, tmp_path) -> str:
    """The name of `tmp_path` in the storage. Each test mounts it anew: Hadoop keeps a file system by its authority."""
    if kind == "viewfs":
        mount = tmp_path.name.lower().replace("_", "-")
        key = f"fs.viewfs.mounttable.{mount}.link./data"
        spark.sparkContext._jsc.hadoopConfiguration().set(key, tmp_path.as_uri())
        return f"viewfs://{mount}/data"
    return str(tmp_path) if kind == "local" else tmp_path.as_uri()


def visible(storage: Storage, folder: str) -> list[str]:
    # Hadoop keeps checksums of local files in hidden ones.
    return [entry.name for entry in storage.entries(folder) if not entry.name.endswith(".crc")]


def test_a_file_is_written_with_the_folders_above_it_and_written_anew(storage, root):
    file = join(root, "a", "b", "metadata")
    storage.write_text(file, "{}")
    storage.write_text(file, "{'id': 'é'}\n")
    assert storage.read_text(file) == "{'id': 'é'}\n"
    assert visible(storage, join(root, "a", "b")) == ["metadata"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(storage, root):
    file = join(root, "metadata")
    storage.write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        storage.write_text(file, "new \udcff")
    assert storage.read_text(file) == "old"
    assert visible(storage, root) == ["metadata"]


def test_a_folder_is_listed_by_name_and_what_is_no_folder_has_nothing(storage, root, tmp_path):
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / "a").mkdir()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    os.utime(tmp_path / "b.txt", (1_000, 1_000))
    folder, file = storage.entries(root)
    assert (folder.name, folder.is_folder) == ("a", True)
    assert (file.name, file.is_folder, file.size, file.modified_ms) == ("b.txt", False, 5, 1_000_000)
    assert storage.read_text(file.path) == "12345"
    assert storage.entries(join(root, "none")) == []
    assert storage.entries(join(root, "b.txt")) == []


@pytest.mark.parametrize(
    ("pattern", "exists"),
    [("in", True), ("in/a.csv", True), ("none", False), ("none/below", False), ("in/*.csv", True),
     ("in/*.json", False), ("*/a.csv", True), ("in/a.{json,csv}", True), ("in/[b-d].csv", False)],
)  # fmt: skip
def test_paths_and_globs_are_seen(storage, root, tmp_path, pattern, exists):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    assert storage.exists(join(root, pattern)) is exists


def test_files_are_told_from_folders(storage, root):
    storage.make_folder(join(root, "x", "y"))
    storage.make_folder(join(root, "x", "y"))
    storage.write_text(join(root, "f"), "")
    assert storage.is_file(join(root, "f"))
    assert not storage.is_file(join(root, "x"))
    assert not storage.is_file(join(root, "none"))


def test_a_folder_is_removed_with_all_that_is_in_it(storage, root):
    storage.write_text(join(root, "x", "y", "f"), "")
    for _ in range(2):
        storage.remove(join(root, "x"))
        assert not storage.exists(join(root, "x"))


def test_a_folder_is_renamed_into_folders_that_are_not_there_yet(storage, root):
    storage.write_text(join(root, "old", "f"), "x")
    storage.rename(join(root, "old"), join(root, "deep", "new"))
    assert storage.read_text(join(root, "deep", "new", "f")) == "x"
    assert not storage.exists(join(root, "old"))


def test_what_is_there_is_not_renamed_over_and_not_moved_into(storage, root):
    storage.write_text(join(root, "old", "f"), "x")
    storage.write_text(join(root, "new", "g"), "y")
    with pytest.raises(OSError, match="new"):
        storage.rename(join(root, "old"), join(root, "new"))
    assert (visible(storage, join(root, "old")), visible(storage, join(root, "new"))) == (["f"], ["g"])


@pytest.mark.parametrize("name", ["none", "none/below"])
def test_a_missing_file_is_an_os_error_that_says_so(storage, root, name):
    with pytest.raises(FileNotFoundError):
        storage.read_text(join(root, name))
    with pytest.raises(OSError, match="none"):
        storage.rename(join(root, name), join(root, "new"))


def test_a_file_in_the_place_of_a_folder_is_an_os_error(storage, root):
    storage.write_text(join(root, "f"), "")
    with pytest.raises(OSError, match="f"):
        storage.write_text(join(root, "f", "below"), "x")


def test_an_unknown_file_system_is_an_os_error(spark):
    with pytest.raises(OSError, match="nowhere"):
        HadoopStorage(spark).exists("nowhere://bucket/x")


def test_a_missing_mount_is_an_os_error(spark, tmp_path: Path):
    with pytest.raises(OSError, match="unmounted"):
        HadoopStorage(spark).write_text("viewfs://unmounted/x", "x")
