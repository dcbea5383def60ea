"""A whole run whose storage, input and output are on a Hadoop file system that is not `file:`."""

from __future__ import annotations

import pytest

from tests.actions.test_run import lines_in
from tests.conftest import place

SETTINGS = """
name: remote
storage: viewfs://cluster/data/storage
spark:
  spark.master: local[2]
  spark.hadoop.fs.viewfs.mounttable.cluster.link./data: {remote}
"""
COPY = """
    pipeline: copy
    latency: low
    sources: {lines: {type: files, path: 'viewfs://cluster/data/in/*', format: text}}
    steps: {loud: {sql: SELECT upper(value) AS value FROM lines}}
    sinks: {out: {of: loud, type: files, path: 'viewfs://cluster/data/out', format: text}}
"""


@pytest.mark.services
def test_settings_of_the_project_mount_it_and_a_second_process_resumes(project_at, penstock_json, tmp_path):
    remote = tmp_path / "remote"
    place(remote / "in/day/1.txt", "a\nb\n")
    root = project_at(COPY, settings=SETTINGS.format(remote=remote.as_uri()))
    first = penstock_json(root, "run", "--once")
    assert first["problems"] == []
    assert (first["queries"][0]["rows_out"], first["queries"][0]["guarantee"]) == (2, "exactly-once")

    place(remote / "in/day/2.txt", "c\n")
    second = penstock_json(root, "run", "--once")
    assert (second["queries"][0]["rows_in"], second["queries"][0]["id"]) == (1, first["queries"][0]["id"])
    assert sorted(line for part in (remote / "out").glob("part-*") for line in part.read_text().split()) == [
        "A",
        "B",
        "C",
    ]
    assert not (root / "storage").exists()


@pytest.mark.covers("recovery.remote")
@pytest.mark.spark
def test_a_run_there_resumes_replays_and_refuses_as_on_a_local_disk(project_at, run_once, tmp_path, spark):
    remote = tmp_path / "remote"
    place(remote / "in/day/1.txt", "a\nb\n")
    # The shared Spark runs already: what `spark:` would set at its start is set by hand.
    mount = tmp_path.name.replace("_", "-")
    key = f"fs.viewfs.mounttable.{mount}.link./data"
    spark.sparkContext._jsc.hadoopConfiguration().set(key, remote.as_uri())
    root = project_at(
        COPY.replace("cluster", mount), settings=f"name: remote\nstorage: viewfs://{mount}/data/storage\n"
    )
    assert [run_once(root).queries[0].rows_in for _ in range(2)] == [2, 0]

    checkpoint = remote / "storage/checkpoints/copy/loud/0001"
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    assert run_once(root).ok
    assert lines_in(f"viewfs://{mount}/data/out", spark) == ["A", "B"]

    pipeline = root / "pipelines/p0.yaml"
    renamed = pipeline.read_text().replace("loud", "shout")
    pipeline.write_text(renamed)
    refused = run_once(root)
    assert not refused.started
    assert [problem.code for problem in refused.problems] == ["CHECKPOINT001"]

    pipeline.write_text(renamed + "queries: {shout: {was: loud}}\n")
    place(remote / "in/day/2.txt", "c\n")
    assert run_once(root).queries[0].rows_in == 1
    assert lines_in(f"viewfs://{mount}/data/out", spark) == ["A", "B", "C"]


@pytest.mark.spark
@pytest.mark.parametrize("storage", ["nowhere://bucket/storage", "viewfs://unmounted/storage"])
def test_a_storage_that_cannot_be_reached_is_a_problem(project_at, run_once, storage):
    root = project_at(
        "pipeline: ticks\nsources: {ticks: {type: rate}}\nsinks: {out: {of: ticks, type: spark, format: noop}}\n",
        settings=f"name: remote\nstorage: {storage}\n",
    )
    refused = run_once(root)
    assert not refused.started
    assert [problem.code for problem in refused.problems] == ["CHECKPOINT002"]
