"""What is out of reach: one clear Problem each, in time, and a clean resume afterwards."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.actions.run import RunResult
from penstock.problems import UserError, errors_in
from penstock.supervise.stopping import Stop
from tests.conftest import place
from tests.services import produce

pytestmark = [pytest.mark.spark, pytest.mark.services]

PATIENCE = 300
SECONDS = 60
"""Within which a Problem is reported. Without a limit of ours, each of these would take two minutes or more."""


def pipeline(source: str = "", sink: str = "type: console") -> str:
    read = source or "type: rate"
    return f"pipeline: p\nsources:\n  a: {{{read}}}\nsinks:\n  out: {{of: a, {sink}}}\n"


def kafka_source(servers: str, topic: str, more: str = "") -> str:
    return (
        f"type: kafka, servers: '{servers}', topics: [{topic}], starting: earliest,"
        f" format: {{type: json, schema: 'id BIGINT'}}{more}"
    )


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def told(tmp_path, penstock, on_shared_spark, monkeypatch):
    """The one Problem of a run, and how long it took."""

    def told(text: str, command: str = "run") -> dict:
        root = tmp_path / "p"
        place(root / "penstock.yaml", "name: p\n")
        place(root / "pipelines/p.yaml", text)
        began = time.monotonic()
        ended = penstock(command, *(["--once"] if command == "run" else []), "--json", at=root)
        assert time.monotonic() - began < SECONDS
        assert ended.code == 1, ended.out
        assert "Traceback" not in ended.out + ended.err
        (problem,) = [one for one in ended.json["problems"] if one["severity"] == "error"]
        assert problem["where"]["file"] == "pipelines/p.yaml"
        assert "secret" not in json.dumps(problem)
        return problem

    return told


def test_a_broker_that_is_not_there(told):
    source = kafka_source(f"127.0.0.1:{closed_port()}", "orders")
    assert told(pipeline(source))["code"] == "KAFKA001"
    assert told(pipeline(source), "check")["code"] == "KAFKA001"


def test_a_wrong_password_for_the_broker(told, kafka, topic):
    login = ", security_protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN, username: penstock, password: wrong"
    assert told(pipeline(kafka_source(kafka.sasl_servers, topic(), login)))["code"] == "KAFKA002"


def test_a_topic_that_is_not_there(told, kafka):
    problem = told(pipeline(kafka_source(kafka.servers, "nobody-made-it")))
    assert problem["code"] == "KAFKA003"
    assert "nobody-made-it" in problem["message"]


def test_a_database_that_is_not_there(told):
    sink = f"type: postgres, url: 'postgresql://penstock:secret@127.0.0.1:{closed_port()}/penstock', table: t"
    assert told(pipeline(sink=sink))["code"] == "POSTGRES001"


def test_a_wrong_password_for_the_database(told, postgres):
    url = f"postgresql://penstock:not-the-secret@127.0.0.1:{postgres.port}/penstock"
    assert told(pipeline(sink=f"type: postgres, url: '{url}', table: t"))["code"] == "POSTGRES002"


def test_a_table_that_is_not_there(told, postgres, pg):
    problem = told(pipeline(sink=f"type: postgres, url: '{postgres.url}', table: nobody_made_it"))
    assert problem["code"] == "POSTGRES003"
    assert "nobody_made_it" in problem["message"]


def test_a_delta_table_that_is_not_there(told):
    problem = told(pipeline(source="type: delta, path: nowhere"))
    assert problem["code"].startswith(("DELTA", "FILES"))


@pytest.fixture
def small_disk(tmp_path) -> Path:
    """A disk of three megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=True)
    yield folder
    # Spark may still have a file of the last batch open: the disk goes when it closes it.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_under_the_checkpoint_and_a_clean_resume(tmp_path, small_disk, kafka, topic, run_once):
    root, name = tmp_path / "p", topic()
    # A full disk may pass by itself: the run would wait for space.
    place(root / "penstock.yaml", f"name: p\nstorage: {small_disk}/storage\nrestarts: {{most: 0}}\n")
    sink = "type: delta, path: out"
    place(root / "pipelines/p.yaml", pipeline(kafka_source(kafka.servers, name), sink))
    produce(kafka.servers, name, (json.dumps({"id": n}) for n in range(10)))

    def run() -> list[str]:
        try:
            return [problem.code for problem in run_once(root).problems]
        except UserError as error:
            return [problem.code for problem in error.problems]

    assert run() == []
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4_096)
        except OSError:
            pass
    produce(kafka.servers, name, (json.dumps({"id": n}) for n in range(10, 20)))
    assert run() in (["CHECKPOINT002"], ["FAILURE009"])
    filler.unlink()
    assert run() == []
    assert ids_in(root / "out") == list(range(20))


def ids_in(folder: Path) -> list[int]:
    import pyarrow.parquet

    log = sorted((folder / "_delta_log").glob("*.json"))
    files = [
        json.loads(line)["add"]["path"] for file in log for line in file.read_text().splitlines() if '"add"' in line
    ]
    return sorted(id_ for file in files for id_ in pyarrow.parquet.read_table(folder / file)["id"].to_pylist())


def test_a_broker_that_restarts_while_the_pipeline_runs(tmp_path, run_once):
    """The query waits for it, or fails with one Problem; nothing is lost or doubled either way."""
    from penstock.engine.broker import Broker

    root, stop = tmp_path / "p", Stop()
    with Broker(tmp_path / "broker", auto_create_topics=True) as broker:
        produce(broker.servers, "orders", (json.dumps({"id": n}) for n in range(50)))
        place(root / "penstock.yaml", "name: p\n")
        place(root / "pipelines/p.yaml", pipeline(kafka_source(broker.servers, "orders"), "type: delta, path: out"))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run_once, root, once=False, stop=stop)
            await_ids(root / "out", 50, running)
            broker.kill()
            broker.start()
            produce(broker.servers, "orders", (json.dumps({"id": n}) for n in range(50, 100)))
            await_ids(root / "out", 100, running)
            stop.ask()
            assert len(errors_in(running.result().problems)) <= 1
        assert run_once(root).ok
    assert ids_in(root / "out") == list(range(100))


def await_ids(folder: Path, count: int, running: Future[RunResult]) -> None:
    """Waits until so many ids are in the table, or the run has ended."""
    deadline = time.monotonic() + PATIENCE
    while not running.done() and len(ids_in(folder)) < count:
        assert time.monotonic() < deadline, f"{count} ids did not come"
        time.sleep(0.1)
