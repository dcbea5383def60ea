"""Every example is run as its README says, and gives what its `expected/` holds."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from pathlib import Path

import pytest

from penstock.pipeline.load import load
from penstock.pipeline.model import Pipeline

EXAMPLES = Path(__file__).parents[1] / "examples"


def copied(name: str, to: Path) -> Path:
    ignored = shutil.ignore_patterns("out", "storage", ".penstock", "__pycache__")
    return Path(shutil.copytree(EXAMPLES / name, to / name, ignore=ignored))


def pipeline_of(root: Path) -> Pipeline:
    file = next(path.name for path in (root / "pipeline.yaml", root / "pipeline.py") if path.is_file())
    return load(root, [file]).pipelines[0]


def normal(row: str) -> str:
    return json.dumps(json.loads(row), sort_keys=True)


def expected(file: Path) -> list[str]:
    return sorted(normal(line) for line in file.read_text().splitlines() if line)


def rows_of(spark, root: Path, pipeline: Pipeline, folder: str) -> list[str]:
    sink = next(sink for sink in pipeline.sinks if sink.spec.path == f"out/{folder}")
    frame = spark.read.format(sink.spec.format.type).load(str(root / sink.spec.path))
    return sorted(map(normal, frame.toJSON().collect()))


@pytest.mark.spark
@pytest.mark.parametrize("name", ["csv_folder", "orders", "orders_python"])
def test_it_gives_what_is_expected_and_nothing_twice(name, tmp_path, run_once, spark):
    root = copied(name, tmp_path)
    pipeline = pipeline_of(root)
    for _ in range(2):
        file = Path(pipeline.origin.where.file).name
        assert run_once(root, file).ok
        for file in sorted((root / "expected").iterdir()):
            assert rows_of(spark, root, pipeline, file.stem) == expected(file)


def test_yaml_and_python_are_the_same_model(tmp_path):
    in_yaml, in_python = (pipeline_of(copied(name, tmp_path)) for name in ("orders", "orders_python"))
    assert in_yaml == in_python
    assert in_yaml.origin != in_python.origin


@pytest.mark.spark
def test_words_from_a_socket_are_counted(tmp_path, start_engine, monkeypatch):
    from penstock.actions.run import RunOptions, run
    from penstock.supervise.loop import Snapshot, Stop

    root = copied("word_count", tmp_path)
    server = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("PORT", str(server.getsockname()[1]))
    lines = (root / "input" / "lines.txt").read_bytes()
    clients: list[socket.socket] = []

    def serve() -> None:
        client, _ = server.accept()
        clients.append(client)
        client.sendall(lines)

    threading.Thread(target=serve, daemon=True).start()
    printed: list[str] = []
    stop = Stop()

    def until_all_is_counted(snapshot: Snapshot) -> None:
        if snapshot.queries[0].rows_in == 3 and not stop.asked:
            stop.ask()

    result = run(
        root,
        ("pipeline.yaml",),
        None,
        RunOptions(for_seconds=60),
        start_engine,
        stop,
        until_all_is_counted,
        printed.append,
    )
    for connection in (*clients, server):
        connection.close()
    assert result.ok
    last = printed[len(printed) - printed[::-1].index("|   word|times|") :]
    cells = [line.strip("|").split("|") for line in last if line.startswith("|")]
    counts = {word.strip(): int(times) for word, times in cells}
    wanted = map(json.loads, expected(root / "expected" / "screen.json"))
    assert counts == {row["word"]: row["times"] for row in wanted}
