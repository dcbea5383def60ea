"""The project's own modules reach the workers."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

PIPELINE = """
    pipeline: spelled
    latency: low
    sources: {numbers: {type: files, path: in, format: {type: csv, schema: n INT}}}
    steps: {words: {python: steps:in_words}}
    sinks: {out: {of: words, type: files, path: out, format: text}}
"""
MODULES = {
    "steps.py": """
from pyspark.sql.functions import udf

from lexicon.english import word


def in_words(numbers):
    return numbers.select(udf(word)("n").alias("word"))
""",
    "lexicon/__init__.py": "",
    "lexicon/english.py": "def word(n):\n    return ('one', 'two')[n - 1]\n",
    "in/1.csv": "1\n2\n",
}


def words_in(folder: Path, spark) -> list[str]:
    return sorted(row.value for row in spark.read.text(str(folder)).collect())


@pytest.mark.covers("operation.function")
@pytest.mark.spark
def test_a_function_of_a_module_runs_in_the_workers(project_at, run_once, spark):
    root = project_at(PIPELINE, files=MODULES)
    result = run_once(root)
    assert result.problems == ()
    assert words_in(root / "out", spark) == ["one", "two"]


@pytest.mark.spark
def test_an_error_in_a_worker_is_told_by_its_last_line(project_at, run_once):
    root = project_at(PIPELINE, files=MODULES | {"in/1.csv": "7\n"})
    (problem,) = run_once(root).problems
    assert problem.code == "RUN001"
    assert "IndexError: tuple index out of range" in problem.message
    assert "Traceback" not in problem.message


@pytest.fixture
def cluster(tmp_path) -> Iterator[str]:
    """The address of a standalone master with one worker, both from PySpark's own wheel."""
    home = Path(pyspark.__file__).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    environ = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    deploy = "org.apache.spark.deploy"
    ours = ("--host", "127.0.0.1", "--webui-port", "0")
    log = tmp_path / "cluster.log"
    with ExitStack() as cleanup:
        for role in (
            (f"{deploy}.master.Master", "--port", str(port), *ours),
            (
                f"{deploy}.worker.Worker",
                master,
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(tmp_path / "work"),
                *ours,
            ),
        ):
            out = cleanup.enter_context(log.open("ab"))
            command = [home / "bin/spark-class", *role]
            started = cleanup.enter_context(
                subprocess.Popen(command, env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            )
            cleanup.callback(started.terminate)
        deadline = time.monotonic() + 300
        while "Successfully registered with master" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield master


@pytest.mark.services
def test_modules_are_shipped_to_a_cluster(project_at, penstock_json, cluster, spark):
    settings = f"name: spread\nspark: {{spark.master: '{cluster}', spark.executor.memory: 512m, spark.cores.max: 1}}\n"
    root = project_at(PIPELINE, files=MODULES, settings=settings)
    assert penstock_json(root, "run", "--once")["problems"] == []
    assert words_in(root / "out", spark) == ["one", "two"]
