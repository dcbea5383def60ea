"""Whole processes: signals, kill -9, a second process, a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import psutil
import pytest

from tests.conftest import place

pytestmark = pytest.mark.services

PATIENCE = 300
"""In seconds, for what a quiet machine does in ten."""
PENSTOCK = str(Path(sys.executable).with_name("penstock"))
SETTINGS = """\
name: slow
spark:
  spark.hadoop.my.secret.key: sesame123
  # A process that lives for seconds is up sooner without Java's second compiler.
  spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
"""
SLOW = """\
pipeline: slow
latency: low
sources: {numbers: {type: files, path: in, format: {type: json, schema: 'id BIGINT'}, max_files_per_trigger: 1}}
steps: {copied: {python: 'work:slowly'}}
sinks: {out: {of: copied, type: files, path: out, format: json}}
"""
WORK = """\
import time
from pyspark.sql.functions import udf

@udf("bigint")
def wait(number):
    time.sleep(0.4)
    return number

def slowly(numbers):
    return numbers.select(wait("id").alias("id"))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "my project"  # a path with a space, as people have them
    place(root / "penstock.yaml", SETTINGS)
    place(root / "pipelines/slow.yaml", SLOW)
    place(root / "work.py", WORK)
    for number in range(8):
        place(root / "in" / f"{number:02d}.json", f'{{"id": {number}}}\n')
    return root


def started(project: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PENSTOCK, "run", *arguments], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def commits(project: Path) -> set[int]:
    folder = project / "storage/checkpoints/slow/copied/0001/commits"
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.is_dir() else set()


def wait_for_commits(project: Path, process: subprocess.Popen[str], count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(commits(project)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ids(project: Path) -> list[int]:
    """What a reader that honours the log of the folder sees."""
    logs = [log for log in (project / "out/_spark_metadata").iterdir() if not log.name.startswith(".")]
    # A compacted log repeats what those before it say, so the files are a set.
    files = {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}
    rows = [row for file in files for row in Path(unquote(file.removeprefix("file://"))).read_text().splitlines()]
    return sorted(json.loads(row)["id"] for row in rows)


@pytest.mark.proof
@pytest.mark.covers("model.exactly-once", "recovery.crash")
def test_kill_9_again_and_again_loses_nothing_and_repeats_nothing(project):
    for more in (1, 3):
        process = started(project)
        wait_for_commits(project, process, more)
        process.kill()
        process.communicate()
    ended = subprocess.run(
        [PENSTOCK, "run", "--once", "--json"], cwd=project, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ids(project) == list(range(8))


@pytest.mark.covers("query.stop")
def test_a_signal_lets_the_batch_under_way_commit(project):
    process = started(project, "--json")
    wait_for_commits(project, process, 1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + err
    result = json.loads(out)
    assert result["queries"][0]["state"] == "stopped"
    assert len(set(ids(project))) == len(ids(project)) == len(commits(project))
    assert result["queries"][0]["last_batch"] == max(commits(project))


def test_a_second_signal_ends_at_once_and_a_second_process_is_refused(project):
    (project / "work.py").write_text(WORK.replace("0.4", "600"))
    process = started(project)
    offsets = project / "storage/checkpoints/slow/copied/0001/offsets/0"
    deadline = time.monotonic() + PATIENCE
    while not offsets.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)

    second = subprocess.run(
        [PENSTOCK, "run", "--once", "--json"], cwd=project, capture_output=True, text=True, check=False
    )
    assert second.returncode == 1
    assert [problem["code"] for problem in json.loads(second.stdout)["problems"]] == ["CHECKPOINT003"]
    assert str(process.pid) in second.stdout

    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "the first signal waits for the batch"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert commits(project) == set(), "the second one does not: the batch takes ten minutes"


def test_spark_that_dies_is_told_and_no_secret_stands_on_its_command_line(project):
    process = started(project, "--json")
    wait_for_commits(project, process, 1)
    (jvm,) = (child for child in psutil.Process(process.pid).children() if child.name() == "java")
    assert "sesame123" not in " ".join(jvm.cmdline())
    jvm.kill()
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, out + err
    assert [problem["code"] for problem in json.loads(out)["problems"]] == ["RUN002"]
    assert err == ""


def test_the_demo_shows_a_live_view_and_leaves_rows(tmp_path):
    leader, follower = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    environ.pop("CI", None)
    process = subprocess.Popen([PENSTOCK, "demo"], cwd=tmp_path, stdout=follower, stderr=follower, env=environ)
    os.close(follower)
    seen = b""
    while chunk := _read(leader):
        seen += chunk
    assert process.wait(timeout=PATIENCE) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert "running" in text
    assert "watermark" in text
    assert re.search(r"[▁▂▃▄▅▆▇█]{20}", text)
    assert "still open" in text
    assert list((tmp_path / "penstock-demo/out/revenue").glob("*.parquet"))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other side is closed
        return b""
