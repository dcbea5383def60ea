"""When files are read: how many in a batch, in which order, and what becomes of them afterwards."""

from __future__ import annotations

import os

import pytest

from penstock.sources import Files
from tests.conftest import place
from tests.sources.test_files import files_in

pytestmark = pytest.mark.spark

COPY = """
    pipeline: copy
    latency: low
    sources: {lines: {type: files, path: in, format: text, %s}}
    sinks: {out: {of: lines, type: files, path: out, format: text}}
"""


@pytest.mark.covers(
    "source.files",
    "source.files.max-files",
    "source.files.max-bytes",
    "source.files.latest-first",
    "trigger.available-now",
)
@pytest.mark.parametrize(
    ("keys", "batches"),
    [
        ({}, [["a", "b", "c", "d"]]),
        ({"max_files_per_trigger": 2}, [["a", "b"], ["c", "d"]]),
        ({"max_files_per_trigger": 3, "latest_first": True}, [["b", "c", "d"], ["a"]]),
        ({"max_bytes_per_trigger": 5}, [["a", "b"], ["c", "d"]]),
        ({"max_files_per_trigger": 3, "max_cached_files": 0}, [["a", "b", "c"], ["d"]]),
        ({"max_bytes_per_trigger": 1}, [["a"], ["b"], ["c"], ["d"]]),
    ],
    ids=str,
)
def test_batches_are_as_large_as_they_may_be_and_in_order(take_all, tmp_path, keys, batches):
    files_in(tmp_path / "in", "a", "b", "c", "d")
    taken = take_all(Files(path="in", format="text", **keys))
    assert taken.batches == [len(batch) for batch in batches]
    rows = iter(taken.column("value"))
    assert [sorted(next(rows) for _ in batch) for batch in batches] == batches


@pytest.mark.covers("source.files.max-file-age")
def test_a_late_file_of_a_great_age_is_passed_over(project_at, run_once, spark):
    root = project_at(COPY % "max_file_age: 1 hour", files={"in/new": "new\n"})
    assert run_once(root).ok
    newest = (root / "in/new").stat().st_mtime
    for name, age_seconds in {"half an hour old": 1_800, "two hours old": 7_200}.items():
        place(root / "in" / name, f"{name}\n")
        os.utime(root / "in" / name, (newest - age_seconds,) * 2)
    assert run_once(root).queries[0].rows_in == 1
    assert sorted(row.value for row in spark.read.text(str(root / "out")).collect()) == ["half an hour old", "new"]


@pytest.mark.covers("source.files.file-name-only")
def test_a_file_of_the_same_name_counts_as_read_whatever_its_folder(project_at, run_once):
    root = project_at(COPY.replace("path: in,", "path: in/*,") % "file_name_only: true", files={"in/x/a": "a\n"})
    assert run_once(root).queries[0].rows_in == 1
    place(root / "in/y/a", "again\n")
    place(root / "in/y/b", "b\n")
    assert run_once(root).queries[0].rows_in == 1


@pytest.mark.covers("source.files.clean-delete", "source.files.cleaner-threads")
@pytest.mark.parametrize("threads", [0, 2])
def test_a_file_that_was_read_is_deleted_with_the_next_batch(take_all, tmp_path, threads):
    files_in(tmp_path / "in", "a", "b", "c")
    source = Files(path="in", format="text", max_files_per_trigger=1, clean_source="delete", cleaner_threads=threads)
    assert take_all(source).column("value") == ["a", "b", "c"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["c"]


@pytest.mark.covers("source.files.clean-archive")
def test_a_file_that_was_read_is_archived_under_its_whole_path_with_the_next_batch(project_at, run_once, spark):
    root = project_at(COPY % "clean_source: archive, source_archive_dir: done", files={"in/a": "a\n"})
    assert run_once(root).ok
    assert (root / "in/a").exists()
    place(root / "in/b", "b\n")
    assert run_once(root).ok
    assert not (root / "in/a").exists()
    assert (root / "done" / root.relative_to("/") / "in/a").read_text() == "a\n"
    assert (root / "in/b").exists()
    assert sorted(row.value for row in spark.read.text(str(root / "out")).collect()) == ["a", "b"]
