"""The probe of shared folders, where driver and tasks are on one machine. Real workers: `test_cluster.py`."""

from __future__ import annotations

import os
import time

import pytest

from penstock.engine import shared_folders
from penstock.engine.shared_folders import CannotWrite, NotProven, Unshared

pytestmark = pytest.mark.spark


def test_a_folder_is_proven_and_left_as_it_was(spark, tmp_path):
    old, new = (tmp_path / f"{shared_folders._PREFIX}{name}" for name in ("killed", "of-another-run"))
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 7200,) * 2)
    assert shared_folders.unshared(spark, [str(tmp_path)]) == []
    assert list(tmp_path.iterdir()) == [new]


def test_a_folder_that_the_driver_cannot_write_to_is_named(spark, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite) as raised:
        shared_folders.unshared(spark, [str(tmp_path), str(tmp_path / "file")])
    assert (raised.value.folder, raised.value.said) == (str(tmp_path / "file"), "Not a directory")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_what_a_task_wrote_elsewhere_is_not_seen_by_the_driver(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_folders, "_SEEN_WITHIN_SECONDS", 0)
    (tmp_path / "executor-2").write_text("of another probe")
    (tmp_path / "executor-3").write_text("token")
    answers = [(f"executor-{n}", f"host{n}", "/data", "well", "") for n in (1, 2, 3)]
    found = list(shared_folders._judged(answers, {"/data": str(tmp_path)}, "token"))
    assert found == [Unshared("/data", f"host{n}", "not seen by driver") for n in (1, 2)]


def test_tasks_that_fail_prove_nothing(spark):
    def broken(_: int) -> list[shared_folders._Answer]:
        raise ModuleNotFoundError("No module named 'missing'")

    with pytest.raises(NotProven, match="No module named 'missing'"):
        shared_folders._one_round(spark, broken, time.monotonic() + 60)


def test_tasks_that_do_not_end_in_time_are_cancelled(spark):
    def slow(_: int) -> list[shared_folders._Answer]:
        time.sleep(60)
        return []

    begun = time.monotonic()
    with pytest.raises(NotProven, match="in time"):
        shared_folders._one_round(spark, slow, begun + 1)
    assert time.monotonic() - begun < 50


def test_the_deepest_folder_that_is_there_is_probed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/file").touch()
    assert shared_folders.existing(str(tmp_path / "in")) == str(tmp_path / "in")
    assert shared_folders.existing(str(tmp_path / "in/file")) == str(tmp_path / "in")
    assert shared_folders.existing(str(tmp_path / "out/a/b")) == str(tmp_path)
