"""Crash points of queries that Spark writes by itself. No code of Penstock's runs in their batches: a thread looks on.

What it looks for is true for milliseconds. So it stops the JVM with SIGSTOP, looks at the disk again, and only then
crashes. Where the moment has passed, the JVM continues.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from penstock import crash_points
from penstock.engine.build import Built, Started
from penstock.notation.paths import is_local, to_local
from penstock.spark_internals import SPARK_IS_GONE
from penstock.storage.storage import LocalStorage
from penstock.supervise.query_logs import QueryLogs

_LOOK_SECONDS = 0.001
_POINTS = ("after_offset_log", "in_task", "after_sink_commit", "before_commit_log", "unwritten_progress")


def begin(built: Built, started: Started, checkpoint: str) -> None:
    """Looks on from now, where a crash was asked for that nothing else would cause in this query."""
    asked = crash_points.chosen()
    if asked is None or asked.point not in _POINTS or started.writer is not None or not is_local(checkpoint):
        return
    watched = _Watched(built, started, checkpoint)
    Thread(target=_look_on, args=(watched, asked), name="crash", daemon=True).start()


def _look_on(watched: _Watched, asked: crash_points.Chosen) -> None:
    turns, last = 0, -1
    try:
        while watched.is_active:
            number = watched.batch_at(asked.point)
            if number is not None and number > last:
                with _jvm_stopped():
                    if watched.is_under_way(number):
                        turns, last = turns + 1, number
                        if turns == asked.turn:
                            crash_points.crash()
            time.sleep(_LOOK_SECONDS)
    except SPARK_IS_GONE:
        return  # Spark has ended, and with it the query


@contextmanager
def _jvm_stopped() -> Iterator[None]:
    import psutil

    jvms = [child for child in psutil.Process().children() if crash_points.is_jvm(child)]
    for jvm in jvms:
        jvm.suspend()
    try:
        yield
    finally:
        for jvm in jvms:
            jvm.resume()


class _Watched:
    """One query, and where it is in its batch."""

    def __init__(self, built: Built, started: Started, checkpoint: str) -> None:
        self._streaming = started.streaming
        self._logs = QueryLogs(started, LocalStorage(), checkpoint)
        self._id, self._run_id = str(started.streaming.id), str(started.streaming.runId)
        self._tracker = built.session.sparkContext.statusTracker()
        path = getattr(built.query.sink.spec, "path", None)
        self._table = to_local(path) if path and is_local(path) else None
        self._earlier_jobs: set[int] = set()

    @property
    def is_active(self) -> bool:
        return bool(self._streaming.isActive)

    def batch_at(self, point: str) -> int | None:
        """The batch that is at the point now, if there is one."""
        planned, committed = self._logs.planned, self._logs.committed
        if point == "unwritten_progress":
            return committed if committed > self._logs.on_disk("commits") else None
        if planned <= committed:
            self._earlier_jobs = self._jobs()
            return None
        if point == "after_offset_log":
            return planned
        there = self._has_job("RUNNING") if point == "in_task" else self._is_written(planned)
        return planned if there else None

    def is_under_way(self, number: int) -> bool:
        """As the disk shows, without the JVM. With asynchronous progress the disk lacks the batch in any case."""
        return self._logs.on_disk("commits") < number

    def _is_written(self, number: int) -> bool:
        """Does the sink have the batch? What keeps no log of its batches has it when a job of the batch has ended."""
        return _has_batch(self._table, self._id, number) if self._table else self._has_job("SUCCEEDED")

    def _has_job(self, status: str) -> bool:
        infos = [self._tracker.getJobInfo(job) for job in self._jobs() - self._earlier_jobs]
        return any(info is not None and info.status == status for info in infos)

    def _jobs(self) -> set[int]:
        return set(self._tracker.getJobIdsForGroup(self._run_id))


def _has_batch(table: Path, query_id: str, number: int) -> bool:
    """Spark's file sink and Delta each note the batch in a log of the table."""
    if (table / "_spark_metadata" / str(number)).exists():
        return True
    commits = sorted((table / "_delta_log").glob("*.json"))
    note = f'"appId":"{query_id}","version":{number}'
    return any(note in commit.read_text(encoding="utf-8") for commit in commits[-2:])
