"""`penstock run` in a process of its own, and kill -9 of it: at a named point, or at a moment that nobody chose."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from penstock import crash_points
from penstock.storage.batch_log import batches
from penstock.storage.storage import LocalStorage

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
_START_SECONDS = 600
_END_SECONDS = 300
_CRASH_SECONDS = 600


def run_and_kill(root: Path, checkpoints: Sequence[Path], within_seconds: float, dice: random.Random) -> None:
    """Runs a project until one of these checkpoints, any, has a new batch; within so many seconds from then it crashes.

    Half the crashes take the driver alone, whose JVM lives on for a moment; the others take the machine.
    """
    awaited = dice.choice(checkpoints)
    before = last_commit(awaited)
    log = root / "run.log"
    with log.open("w") as said:
        process = subprocess.Popen([PENSTOCK, "run"], cwd=root, stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while last_commit(awaited) == before:
            assert process.poll() is None, f"ended by itself: {log.read_text()}"
            assert time.monotonic() < deadline, f"no batch was committed: {log.read_text()}"
            time.sleep(0.01)
        time.sleep(dice.uniform(0, within_seconds))
        assert process.poll() is None, f"ended by itself: {log.read_text()}"
    finally:
        kill(process, with_jvm=dice.random() < 0.5)


def kill(process: subprocess.Popen[bytes], *, with_jvm: bool) -> None:
    """The driver, and the JVM that it has started or not; nothing, where it has ended by itself.

    Returns when the JVM is gone too: what it still commits is not taken for the work of the next run.
    """
    if process.poll() is not None:
        return
    children = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    if with_jvm:
        for child in children:
            child.kill()
    _, left = psutil.wait_procs(children, _END_SECONDS)
    assert not left, "the JVM outlives its driver"


def run_to_crash(root: Path, point: str, *arguments: str) -> None:
    """Runs a project until it crashes at a point. Returns when its JVM is gone: the lock is free then."""
    environ = os.environ | {crash_points.VARIABLE: point}
    log = root / "run.log"
    with log.open("w") as said:
        process = subprocess.Popen([PENSTOCK, "run", *arguments], cwd=root, stdout=said, stderr=said, env=environ)
    code = process.wait(_CRASH_SECONDS)
    assert code == -signal.SIGKILL, f"{point} was not reached, exit code {code}: {log.read_text()}"


def run_to_the_end(root: Path) -> None:
    """Takes all that is there."""
    once = [PENSTOCK, "run", "--once", "--json"]
    ended = subprocess.run(once, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def written(checkpoint: Path, log: str) -> list[int]:
    """The batches in one of its logs, oldest first."""
    return sorted(batches(LocalStorage(), str(checkpoint / log)))


def last_commit(checkpoint: Path) -> int:
    return max(written(checkpoint, "commits"), default=-1)
