"""A sum without its file does not block a start."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.checkpoint import orphan_sums
from penstock.storage.storage import LocalStorage
from tests.actions.test_run import checkpoint_of
from tests.conftest import place

COPY = """
    pipeline: copy
    sources: {rows: {type: files, path: in, format: text}}
    sinks: {out: {of: rows, type: files, path: out, format: text}}
    queries:
      rows:
        spark:
          spark.sql.streaming.checkpointFileManagerClass: >-
            org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager
"""
"""With the file manager that Spark has by default: the quicker one writes no sums."""


def test_only_sums_without_a_file_are_removed(tmp_path: Path) -> None:
    for name in ("offsets/1", "offsets/.1.crc", "offsets/.2.crc", "sources/0/.9.compact.crc", "commits/.x.crc"):
        place(tmp_path / name, "")
    place(tmp_path / "out/_spark_metadata/.7.crc", "")
    removed = orphan_sums.remove(LocalStorage(), str(tmp_path), [str(tmp_path / "out")])
    assert sorted(str(Path(path).relative_to(tmp_path)) for path in removed) == [
        "offsets/.2.crc",
        "out/_spark_metadata/.7.crc",
        "sources/0/.9.compact.crc",
    ]
    assert (tmp_path / "offsets/.1.crc").exists()
    assert (tmp_path / "commits/.x.crc").exists()


@pytest.mark.spark
@pytest.mark.parametrize("log", ["offsets", "commits", "sources/0", "out/_spark_metadata"])
def test_a_start_is_not_blocked_by_a_sum_whose_entry_is_gone(project_at, run_once, spark, log):
    root = project_at(COPY, files={"in/1.txt": "a\n"})
    assert run_once(root).ok
    folder = root / log if log.startswith("out") else checkpoint_of(root, "copy", "rows") / log
    (folder / ".1.crc").write_bytes((folder / ".0.crc").read_bytes())
    place(root / "in/2.txt", "b\n")
    assert run_once(root).problems == ()
    assert sorted(row.value for row in spark.read.text(str(root / "out")).collect()) == ["a", "b"]
