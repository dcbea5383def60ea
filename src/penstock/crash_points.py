"""Named places at which a test can crash Penstock on purpose: `PENSTOCK_CRASH=between_sinks`, or `between_sinks:3`.

A crash is a power cut for this machine's part of the run: the JVM, its Python workers and the driver are killed with
SIGKILL, and nothing is cleaned up. Without the variable, a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from penstock.problems import Problem, UserError, did_you_mean

if TYPE_CHECKING:
    import psutil

VARIABLE = "PENSTOCK_CRASH"
POINTS = {
    "after_offset_log": "the offset log has the batch; no row of it is written yet",
    "in_task": "a task is writing rows of the batch",
    "before_sink_commit": "PostgreSQL has the rows in its staging table; the transaction that takes them has not begun",
    "after_dead_letters": "a sink has put refused rows aside; its own commit has not happened yet",
    "after_sink_commit": "a sink has the batch; Penstock's note of it is not written yet",
    "between_sinks": "one sink of a query has the batch, the next one does not",
    "before_commit_log": "all sinks have the batch; the commit log does not",
    "unwritten_progress": "with `async_progress`: a finished batch is not in the log on disk yet",
    "after_schema_version": "the next version of a living schema is written; the query has not restarted with it",
    "during_replay": "a replay has put records back; its note that it did is not written yet",
}
"""By name, what is true at that moment."""


@dataclass(frozen=True)
class Chosen:
    """The point that crashes, and at which time that it is reached, from 1."""

    point: str
    turn: int = 1


def parse(text: str) -> Chosen:
    """`point` or `point:N`. Raises UserError for one that does not exist."""
    point, _, turn = text.partition(":")
    if point not in POINTS:
        raise UserError(
            Problem("CRASH001", f"{VARIABLE}={text}: there is no crash point `{point}`{did_you_mean(point, POINTS)}",
                    f"use one of: {', '.join(POINTS)}; or run `unset {VARIABLE}`")
        )  # fmt: skip
    if turn and not (turn.isdecimal() and int(turn)):
        raise UserError(
            Problem("CRASH001", f"{VARIABLE}={text}: `{turn}` is not a number from 1 on",
                    f"write `{VARIABLE}={point}:2` to crash the second time that the point is reached")
        )  # fmt: skip
    return Chosen(point, int(turn or 1))


@cache
def chosen() -> Chosen | None:
    """The crash that this process is asked for, if any. Raises UserError."""
    text = os.environ.get(VARIABLE, "")
    return parse(text) if text else None


_turns = count(1)
_one_at_a_time = Lock()


def reached(point: str) -> None:
    """Crashes here, if this point was asked for and its turn has come."""
    asked = chosen()
    if asked is None or asked.point != point:
        return
    with _one_at_a_time:
        if next(_turns) == asked.turn:
            crash()


def crash() -> None:
    """Kills the JVM first, then its workers and the driver: the JVM would otherwise commit for two seconds more."""
    import psutil

    me = psutil.Process()
    jvm_above = next((process for process in me.parents() if is_jvm(process)), None)
    driver = (jvm_above.parent() or me) if jvm_above else me
    family = [*driver.children(recursive=True), driver]
    _kill(process for process in family if is_jvm(process))
    _kill(process for process in family if process.pid != me.pid)
    os.kill(me.pid, signal.SIGKILL)


def is_jvm(process: psutil.Process) -> bool:
    import psutil

    try:
        return bool(process.name() == "java")
    except psutil.NoSuchProcess:
        return False


def _kill(processes: Iterable[psutil.Process]) -> None:
    import psutil

    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
