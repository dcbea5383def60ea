"""A file that is deleted between Spark's two looks at it is never lost in silence."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.screens.query_words import sum_words
from penstock.supervise.vanished_files import VanishedFiles
from tests.actions.test_run import checkpoint_of
from tests.conftest import place

pytestmark = pytest.mark.spark
COPY = """
    pipeline: copy
    sources: {rows: {type: files, path: in, format: text, max_files_per_trigger: 2%s}}
    sinks: {out: {of: rows, type: files, path: out, format: text}}
"""


def planned_and_gone(root: Path, run_once: Any, *gone: str) -> None:
    """As after a crash: batch 1 is planned and not done, and files of it are deleted."""
    assert run_once(root).ok
    for name in ("b", "c"):
        place(root / f"in/{name}", f"{name}\n")
    assert run_once(root).ok
    checkpoint = checkpoint_of(root, "copy", "rows")
    for log in (checkpoint / "commits", root / "out/_spark_metadata"):
        for name in ("1", ".1.crc"):
            (log / name).unlink(missing_ok=True)
    for file in (root / "out").glob("part-*"):
        if file.read_text() != "a\n":
            file.unlink()
    for name in gone:
        (root / "in" / name).unlink()


def values(spark: Any, root: Path) -> list[str]:
    return sorted(row.value for row in spark.read.text(str(root / "out")).collect())


def test_a_file_that_vanished_stops_the_query_and_is_named(project_at, run_once, spark):
    root = project_at(COPY % "", files={"in/a": "a\n"})
    planned_and_gone(root, run_once, "c")
    result = run_once(root)
    (problem,) = result.problems
    assert (problem.code, result.ok) == ("FILES012", False)
    assert "/in/c`" in problem.message
    assert problem.where is not None
    # What the fix says: here the batch may have been committed before anybody looked, or not.
    place(root / ("in/c2" if "another name" in problem.fix else "in/c"), "c\n")
    assert run_once(root).ok
    assert values(spark, root) == ["a", "b", "c"]


def test_a_file_that_may_be_missing_is_passed_over(project_at, run_once, spark):
    root = project_at(COPY % ", ignore_missing_files: true", files={"in/a": "a\n"})
    planned_and_gone(root, run_once, "c")
    result = run_once(root)
    assert result.ok
    assert values(spark, root) == ["a", "b"]
    (query,) = result.queries
    assert (query.missing_files, query.to_json()["missing_files"]) == (1, 1)
    assert "1 file missing" in sum_words(query)
    (again,) = run_once(root).queries  # nothing is counted twice
    assert again.missing_files == 0


def test_files_that_vanish_while_they_wait_for_their_batch(project_at, run_once, spark):
    """`--once` lists the folder when it starts, and takes two files at a time."""
    root = project_at(COPY % "", files={f"in/{number:02}": f"{number}\n" for number in range(40)})
    done = []

    def deletes(snapshot: Any) -> None:
        if snapshot.queries[0].batches and not done:
            done.append(True)
            for file in sorted((root / "in").iterdir())[-6:]:
                file.unlink()

    result = run_once(root, on_snapshot=deletes)
    assert done
    assert [problem.code for problem in result.problems] == ["FILES012"]


def test_files_that_go_after_they_were_read_are_no_loss(project_at, run_once, spark):
    root = project_at(COPY % ", clean_source: delete", files={f"in/{number:02}": f"{number}\n" for number in range(20)})
    result = run_once(root)
    assert result.problems == ()
    assert len(values(spark, root)) == 20


@pytest.mark.parametrize("gone", [True, False])
def test_a_batch_that_nobody_saw_is_judged_by_the_count_of_files_that_spark_read(spark, tmp_path, read, gone):
    """Two batches are done before anybody looks: the first is not the newest any more."""
    (tmp_path / "in").mkdir()
    rows = spark.readStream.option("maxFilesPerTrigger", 2).text(str(tmp_path / "in"))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))

    def runs() -> Any:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    for name in ("a", "b"):
        place(tmp_path / "in" / name, name)
    runs()
    shutil.rmtree(tmp_path / "checkpoint/commits")  # planned and not done
    if gone:
        (tmp_path / "in/b").unlink()
    for name in ("c", "d"):
        place(tmp_path / "in" / name, name)
    query = runs()
    if not gone:
        (tmp_path / "in/b").unlink()  # somebody tidies up what was read
    pipeline = read(
        f"pipeline: p\nsources: {{rows: {{type: files, path: {tmp_path}/in, format: text}}}}\n"
        "sinks: {out: {of: rows, type: console}}\n"
    )
    from penstock.storage.storage import LocalStorage

    time.sleep(1)  # Spark's page on SQL follows
    files = VanishedFiles(query, spark, LocalStorage(), str(tmp_path / "checkpoint"), pipeline.sources)
    found = list(files.look([0, 1]))
    assert [(one.batch, [Path(file).name for file in one.files]) for one in found] == ([(0, ["b"])] if gone else [])
