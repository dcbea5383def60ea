"""Proves that folders are the same for the driver and for every executor: each sees a file that the other wrote."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from penstock import spark_internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_SECONDS = 120.0
"""How long executors may take to start, and to be reached, all of them."""
_SEEN_WITHIN_SECONDS = 3.0
"""A network file system may show a new file a moment later."""
_SETTLED_SECONDS = 1.0
"""Executors register one by one. So long there must be no new one."""
_REGISTERED_SECONDS = 30.0
"""How long Spark's own scheduler, too, waits for all executors that it has asked for."""
_PREFIX = ".penstock-probe-"
_LEFT_BEHIND_SECONDS = 3600.0
_DRIVER = "driver"

Outcome = Literal["well", "not seen by executor", "not seen by driver", "not written by executor"]
_Answer = tuple[str, str, str, str, str]
"""The executor, its host, the folder, the outcome, and what the operating system said."""


@dataclass(frozen=True)
class Unshared:
    """A folder that is not the same on one side."""

    folder: str
    host: str
    outcome: Outcome
    said: str = ""


class NotProven(Exception):
    """The folders may be shared; it could not be found out."""


class CannotWrite(Exception):
    """The driver itself cannot write into a folder."""

    def __init__(self, folder: str, error: OSError) -> None:
        self.folder, self.said = folder, error.strerror or str(error)
        super().__init__(f"{folder}: {self.said}")


def existing(path: str) -> str:
    """The deepest folder of a path that is there: what is made below it later is on the same file system."""
    folder = Path(path)
    return str(next(one for one in (folder, *folder.parents) if one.is_dir()))


def unshared(spark: SparkSession, folders: Sequence[str], wait_seconds: float = WAIT_SECONDS) -> list[Unshared]:
    """Which of the folders some executor does not share with the driver. Raises NotProven and CannotWrite.

    Nothing is left in the folders. A task writes only where it has seen the driver's file.
    """
    token = uuid4().hex
    with contextlib.ExitStack() as cleanup:
        probes = {}
        for folder in dict.fromkeys(folders):
            probes[folder] = cleanup.enter_context(_probe_folder(folder, token))
        answers = _asked(spark, _look(probes, token, _SEEN_WITHIN_SECONDS), time.monotonic() + wait_seconds)
        found = list(_judged(answers, probes, token))
        if any(one.outcome == "not seen by driver" for one in found):  # the files are on the executors' own disks
            with contextlib.suppress(NotProven):
                _one_round(spark, _remove(probes), time.monotonic() + wait_seconds)
    return found


@contextlib.contextmanager
def _probe_folder(folder: str, token: str) -> Iterator[str]:
    """A folder of this probe alone, with the driver's file in it."""
    probe = Path(folder, f"{_PREFIX}{token}")
    try:
        _remove_left_behind(Path(folder))
        probe.mkdir()
        Path(probe, _DRIVER).write_text(token, encoding="ascii")
        yield str(probe)
    except OSError as error:
        raise CannotWrite(folder, error) from None
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def _remove_left_behind(folder: Path) -> None:
    """What a driver that was killed has left."""
    for old in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                shutil.rmtree(old, ignore_errors=True)


def _judged(answers: Iterable[_Answer], probes: dict[str, str], token: str) -> Iterator[Unshared]:
    told = set()
    for executor, host, folder, answered, said in answers:
        lost = answered == "well" and not _seen(Path(probes[folder], executor), token)
        outcome = "not seen by driver" if lost else answered
        if outcome != "well" and (host, folder, outcome) not in told:
            told.add((host, folder, outcome))
            yield Unshared(folder, host, outcome, said)  # type: ignore[arg-type] # one of the words


def _seen(file: Path, token: str) -> bool:
    deadline = time.monotonic() + _SEEN_WITHIN_SECONDS
    while True:
        with contextlib.suppress(OSError):
            if file.read_text(encoding="ascii") == token:
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)


def _asked(spark: SparkSession, look: Callable[[int], list[_Answer]], deadline: float) -> list[_Answer]:
    """What tasks on every executor answer, each executor once. Raises NotProven."""
    answers: dict[tuple[str, str], _Answer] = {}
    begun = since = time.monotonic()
    known, expected = spark_internals.executors(spark), _expected(spark)
    while True:
        for answer in _one_round(spark, look, deadline):
            answers[answer[0], answer[2]] = answer
        reached, there, now = len({one for one, _ in answers}), spark_internals.executors(spark), time.monotonic()
        if there != known:
            known, since = there, now
        refused = any(outcome != "well" for *_, outcome, _ in answers.values())
        wanted = max(there, expected if now < begun + _REGISTERED_SECONDS else 0)
        if reached >= wanted and (refused or now - since >= _SETTLED_SECONDS):
            return list(answers.values())
        if now > deadline:
            raise NotProven(f"tasks reached {reached} of {there} executors")
        time.sleep(0.2)


def _expected(spark: SparkSession) -> int:
    """How many executors Spark has asked for, where its settings say it."""
    conf = spark.sparkContext.getConf()
    if instances := conf.get("spark.executor.instances"):
        return int(instances)
    most, each = conf.get("spark.cores.max"), conf.get("spark.executor.cores")
    return int(most) // int(each) if most and each else 1


def _one_round(spark: SparkSession, look: Callable[[int], list[_Answer]], deadline: float) -> list[_Answer]:
    """One job with more tasks than there are slots."""
    context, group = spark.sparkContext, f"{_PREFIX}{uuid4().hex}"
    tasks = 2 * max(int(context.defaultParallelism), spark_internals.executors(spark), 1)

    def collected() -> list[_Answer]:
        context.setJobGroup(group, "Are the shared folders the same everywhere?", interruptOnCancel=True)
        return [one for found in context.parallelize(range(tasks), tasks).map(look).collect() for one in found]

    with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="shared-folders") as thread:
        job = thread.submit(collected)
        try:
            return job.result(timeout=max(1.0, deadline - time.monotonic()))
        except TimeoutError:
            context.cancelJobGroup(group)
            raise NotProven("no executor has taken all of its tasks in time") from None
        except Exception as error:
            raise NotProven(_cause(error)) from error


def _cause(error: Exception) -> str:
    """Why a job failed, in one line: the last one of the newest failure that is no place in code."""
    text = str(error).partition("most recent failure: ")[2] or str(error)
    lines = text.partition("Driver stacktrace:")[0].splitlines()
    said = [line for line in lines if line.strip() and not line.startswith((" ", "\t", "Caused by:"))]
    return said[-1].strip() if said else type(error).__name__


# Functions in functions: they reach executors whole, and Penstock need not be installed there.


def _look(probes: dict[str, str], token: str, seen_within: float) -> Callable[[int], list[_Answer]]:
    driver = _DRIVER

    def look(_: int) -> list[_Answer]:
        import hashlib
        import socket
        import time
        from pathlib import Path

        host = socket.gethostname()
        own = (host, str(Path.cwd()), os.environ.get("SPARK_EXECUTOR_ID", ""))
        executor = "executor-" + hashlib.sha256(repr(own).encode()).hexdigest()[:16]
        answers: list[_Answer] = []
        deadline = time.monotonic() + seen_within
        for folder, probe in probes.items():
            outcome, said = "not seen by executor", ""
            while outcome == "not seen by executor":
                try:
                    outcome = "well" if Path(probe, driver).read_text(encoding="ascii") == token else outcome
                except OSError as error:
                    said = error.strerror or str(error)
                if time.monotonic() > deadline:
                    break
                if outcome != "well":
                    time.sleep(0.1)
            if outcome == "well":
                try:
                    Path(probe, executor).write_text(token, encoding="ascii")
                except OSError as error:
                    outcome, said = "not written by executor", error.strerror or str(error)
            answers.append((executor, host, folder, outcome, said))
        time.sleep(0.1)  # so that another executor takes the next task
        return answers

    return look


def _remove(probes: dict[str, str]) -> Callable[[int], list[_Answer]]:
    def remove(_: int) -> list[_Answer]:
        import shutil

        for probe in probes.values():
            shutil.rmtree(probe, ignore_errors=True)
        return []

    return remove
