"""A cluster whose workers do not see every folder of the driver: nothing is written where nobody looks."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import cluster as clusters
from tests.cluster import Cluster
from tests.conftest import place
from tests.engine.test_modules import MODULES, PIPELINE, words_in

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(not clusters.can_hide_folders(), reason="this user cannot give a process mounts of its own"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with clusters.started(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def project_in(folder: Path, settings: str, pipeline: str = PIPELINE) -> Path:
    root = folder / "project"
    place(root / "penstock.yaml", settings)
    place(root / "pipelines/spelled.yaml", pipeline.replace("\n    ", "\n").lstrip())
    for name, text in MODULES.items():
        place(root / name, text)
    return root


def files_below(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if ".penstock" not in file.relative_to(folder).parts}


def test_local_folders_are_refused_and_nothing_is_started(cluster, penstock_json):
    root = project_in(cluster.hidden, f"name: lost\n{cluster.settings}")
    before = files_below(cluster.hidden)
    told = penstock_json(root, "run", "--once")["problems"]
    assert [problem["code"] for problem in told] == ["CLUSTER001"] * 3
    assert [(problem["where"]["file"], problem["where"]["line"]) for problem in told] == [
        ("penstock.yaml", 1),
        ("pipelines/spelled.yaml", 3),
        ("pipelines/spelled.yaml", 5),
    ]
    assert files_below(cluster.hidden) == before
    assert not (root / ".penstock/spark.log").exists()


def test_a_folder_that_is_declared_and_not_shared_is_found_by_the_probe(cluster, penstock_json):
    shared = [".", cluster.half, cluster.read_only, cluster.covered]
    settings = (
        f"name: declared\n{cluster.settings}shared_paths: [{', '.join(map(str, shared))}]\nstorage: {cluster.half}\n"
    )
    pipeline = PIPELINE.replace("path: in", f"on_bad_record: dead_letter, path: {cluster.read_only}/in")
    pipeline = pipeline.replace("path: out", f"path: {cluster.covered}/out")
    place(cluster.read_only / "in/1.csv", "1\n")
    root = project_in(cluster.hidden, settings, pipeline)
    folders = (cluster.hidden, cluster.half, cluster.read_only, cluster.covered)
    before = [files_below(folder) for folder in folders]
    told = penstock_json(root, "run", "--once")["problems"]
    assert [(problem["code"], problem["where"]["line"]) for problem in told] == [("CLUSTER003", 3)] * 4
    seen = sorted(problem["message"].partition(", and ")[2] for problem in told)
    host, missing = socket.gethostname(), "No such file or directory"
    assert seen == [
        f"an executor on `{host}` cannot write to `{cluster.read_only}/in`: Read-only file system",
        f"an executor on `{host}` does not see the file that the driver wrote to `{cluster.half}`: {missing}",
        f"an executor on `{host}` does not see the file that the driver wrote to `{root}`: {missing}",
        f"the driver does not see the file that an executor on `{host}` wrote to `{cluster.covered}`",
    ]
    assert [files_below(folder) for folder in folders] == before


@pytest.mark.covers("operation.function")
def test_rows_are_right_in_a_folder_that_is_shared_and_modules_are_shipped(cluster, penstock_json, spark):
    root = project_in(cluster.shared, f"name: spread\n{cluster.settings}shared_paths: [.]\n")
    ended = penstock_json(root, "run", "--once")
    assert ended["problems"] == []
    assert [(query["rows_in"], query["guarantee"]) for query in ended["queries"]] == [(2, "exactly-once")]
    assert words_in(root / "out", spark) == ["one", "two"]
    assert not list(root.rglob(".penstock-probe-*"))
