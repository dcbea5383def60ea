"""`penstock dev`, as a process and with bad input."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.services import consume, produce

services = pytest.mark.services

PENSTOCK = str(Path(sys.executable).with_name("penstock"))


@contextmanager
def running(temporary: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [PENSTOCK, "dev", "kafka", "--port", "0", *arguments]
    environ = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=temporary
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def first_json(process: subprocess.Popen[str]) -> dict[str, Any]:
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            break
    return json.loads("".join(lines) or process.stderr.read())


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "ä"])
def test_a_wrong_topic_name_is_told_before_anything_starts(name, penstock) -> None:
    ended = penstock("dev", "kafka", "--port", "0", "--topic", "good", "--topic", name, "--json")
    assert (ended.code, ended.codes) == (1, ["DEV005"])


def test_a_taken_port_is_told(penstock, tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = penstock("dev", "kafka", "--port", str(taken.getsockname()[1]), "--data", tmp_path / "new", "--json")
    assert (ended.code, ended.codes) == (1, ["DEV001"])


def test_without_java_it_says_so(penstock, monkeypatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/java/here")
    ended = penstock("dev", "kafka", "--port", "0", "--json")
    assert (ended.code, ended.codes) == (1, ["ENGINE001"])


@pytest.mark.parametrize("arguments", [("--port", "70000"), ("--port", "x"), ("--topic",)])
def test_wrong_usage_is_exit_code_2(arguments, penstock) -> None:
    assert penstock("dev", "kafka", *arguments).code == 2


@services
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_it_runs_until_a_signal_and_leaves_nothing(number, tmp_path) -> None:
    with running(tmp_path, "--topic", "orders", "--json") as process:
        told = first_json(process)
        produce(told["servers"], "orders", ["a"])
        produce(told["servers"], "made-on-use", ["b"])
        assert [message.value() for message in consume(told["servers"], "orders")] == [b"a"]
        assert Path(told["folder"]).parent == tmp_path
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "", "")
    assert told["topics"] == ["orders"]
    assert list(tmp_path.iterdir()) == []


@services
def test_a_folder_that_is_given_is_kept_and_used_by_one_only(tmp_path, penstock) -> None:
    data = tmp_path / "kept"
    with running(tmp_path, "--data", str(data), "--topic", "orders") as process:
        servers = process.stdout.readline().split()[3].rstrip(",")
        shown = process.stdout.readline() + process.stdout.readline()
        assert f"export KAFKA_SERVERS={servers}" in shown
        produce(servers, "orders", ["a"])
        ended = penstock("dev", "kafka", "--port", "0", "--data", data, "--json")
        assert (ended.code, ended.codes) == (1, ["DEV002"])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert process.returncode == 0
    with running(tmp_path, "--data", str(data), "--topic", "orders", "--json") as process:
        told = first_json(process)
        assert [message.value() for message in consume(told["servers"], "orders")] == [b"a"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)


@services
def test_a_broker_that_dies_is_told(tmp_path) -> None:
    with running(tmp_path, "--json") as process:
        first_json(process)
        broker = int(subprocess.check_output(["pgrep", "-P", str(process.pid), "java"], text=True))
        os.kill(broker, signal.SIGKILL)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 3
    assert "DEV007" in err
    assert list(tmp_path.iterdir()) == []
