"""One running query, as Python sees it."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.dead_letters import verdicts
from penstock.engine import record_times
from penstock.engine.build import OBSERVATION, Built, Started
from penstock.engine.spark_problems import causes, query_failed, spark_is_gone
from penstock.engine.under_way import BatchMetrics, UnderWay
from penstock.facts.observed import ProgressFacts
from penstock.metrics.progress import from_spark
from penstock.notation.durations import to_milliseconds
from penstock.notation.references import Mask
from penstock.pipeline.model import Pipeline
from penstock.problems import Fault, Problem, UserError
from penstock.query.guarantees import Guarantee
from penstock.spark_internals import SPARK_IS_GONE, reports_since
from penstock.storage.storage import Storage
from penstock.supervise.attempts import Attempts
from penstock.supervise.backlog import Backlog
from penstock.supervise.query_logs import QueryLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOOK_SECONDS = 1.0


class RunningQuery:
    """A handle on one query: what it is, what it does, and how to end it. Secrets are masked in all that it tells."""

    def __init__(
        self,
        pipeline: Pipeline,
        built: Built,
        started: Started,
        anew: Callable[[], tuple[Built, Started]],
        guarantee: Guarantee,
        checkpoint: str,
        mask: Mask,
        storage: Storage,
        backlog: Backlog | None = None,
    ) -> None:
        self._pipeline, self._built, self._begin_anew, self._mask = pipeline, built, anew, mask
        self._storage, self._backlog = storage, backlog
        self._problem: Problem | None = None
        self._since = time.monotonic()
        self._attempts = Attempts()
        self.pipeline, self.checkpoint = pipeline.name, checkpoint
        self._take(started)
        self.guarantee = guarantee
        self.max_bad_share = built.query.settings.max_bad_share

    def _take(self, started: Started) -> None:
        self._started, self._trigger, self._writer = started.streaming, started.trigger, started.writer
        self._logs = QueryLogs(started, self._storage, self.checkpoint)
        # With asynchronous progress a number of a batch may come again.
        self._last_told: int = -1
        self._last_seen = ""
        self._metrics: BatchMetrics | None = None
        if self._trigger.kind == "real_time":
            self._metrics = BatchMetrics(self._started, self._built.session)
        self._under_way: UnderWay | None = None
        self._looked_at = 0.0

    @property
    def name(self) -> str:
        return self._built.query.name

    @property
    def id(self) -> str:
        """The same for the life of the checkpoint."""
        return str(self._started.id)

    @property
    def run_id(self) -> str:
        """New at each start."""
        return str(self._started.runId)

    @property
    def is_active(self) -> bool:
        try:
            return bool(self._started.isActive)
        except SPARK_IS_GONE:  # Spark has ended, and with it the query
            return False

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._mask.deeply(dict(self._started.status))
        return status

    @property
    def last_progress(self) -> dict[str, Any] | None:
        progress = self._started.lastProgress
        return None if progress is None else self._plain(progress)

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        return [self._plain(progress) for progress in self._started.recentProgress]

    @property
    def exception(self) -> Problem | None:
        """Why it failed, or None."""
        if self._problem is not None:
            return self._problem
        try:
            error: Exception | None = self._started.exception()
        except SPARK_IS_GONE:
            return spark_is_gone(self._built.query)
        if error is None:
            return None
        if self._writer is not None and self._writer.problem is not None:
            return self._masked(self._writer.problem)
        if self._writer is not None and self._writer.refused is not None:
            return self._masked(self._writer.refused)
        if self._writer is not None and self._writer.error is not None:
            error = self._writer.error  # Spark tells only that Python code failed
        self._problem = query_failed(error, self._built.query, self._pipeline, self._built.session, self._mask)
        return self._problem

    def mend(self) -> bool:
        """After a failure: lets the sources mend what they can, and tells whether to start anew.

        Where Spark does not run a failed task again, the whole query is started again, if not for ever.
        """
        try:
            error = self._writer.error if self._writer and self._writer.error else self._started.exception()
        except SPARK_IS_GONE:
            return False  # Spark is gone; `exception` says so
        if error is None or (self._writer is not None and self._writer.problem is not None):
            return False
        failure = "\n".join((*causes(error), str(error)))
        for source in self._pipeline.sources_of(self.name):
            try:
                if source.spec.recover(failure, self._built.session, self.checkpoint):
                    return True
            except Fault as fault:
                self._problem = self._masked(fault.at(source.origin.at(*fault.keys)))
                return False
        failed = self.exception
        of_a_task = not self._trigger.retries_tasks and failed is not None and failed.code == "RUN001"
        return of_a_task and self._attempts.another(time.monotonic())

    def restart(self) -> None:
        """Starts it again on its checkpoint, declared anew. A failure to do so is told by `exception`."""
        try:
            self._built, started = self._begin_anew()
            self._take(started)
            self._since, self._problem = time.monotonic(), None
        except UserError as error:
            self._problem = self._masked(error.problems[0])

    @property
    def is_stale(self) -> bool:
        """Has a static source, that a restart alone can refresh, been kept for longer than it should?"""
        intervals = [
            to_milliseconds(refresh) / 1_000
            for source in self._pipeline.sources_of(self.name)
            if (refresh := getattr(source.spec, "refresh", None)) not in (None, "batch")
        ]
        return bool(intervals) and time.monotonic() - self._since >= min(intervals)

    def break_off(self, problem: Problem) -> None:
        """Stops it for a reason that Spark does not know."""
        self._problem = self._masked(replace(problem, where=self._built.query.origin.where))
        self.stop()

    def _masked(self, problem: Problem) -> Problem:
        return replace(problem, message=self._mask(problem.message), fix=self._mask(problem.fix))

    def new_progress(self) -> list[ProgressFacts]:
        """The batches that were finished since it was asked last, oldest first, as far as Spark still knows them."""
        try:
            last = self._started.lastProgress
        except SPARK_IS_GONE:
            return []  # Spark is gone; `exception` says so
        if last is None or last["timestamp"] == self._last_seen:
            return []
        self._last_seen = last["timestamp"]
        # An idle trigger reports too, under the number of a batch that is still to come.
        executed = [one for one in self._reported_since(self._last_told) if "addBatch" in one["durationMs"]]
        newest = {int(one["batchId"]): one for one in reversed(executed)}
        self._last_told = max(newest, default=self._last_told)
        observed = (OBSERVATION, verdicts.OBSERVED, record_times.TIMES)
        return [from_spark(self.name, newest[n], *observed) for n in sorted(newest)]

    def _reported_since(self, batch: int) -> Iterator[dict[str, Any]]:
        """Newest first."""
        for report in reports_since(self._started, batch):
            yield json.loads(self._mask(report))

    @property
    def batch_under_way(self) -> int | None:
        """The batch that is planned and not committed. One whose rows have left already is not waited for."""
        if self._trigger.emits_early:
            return None
        return self._logs.under_way

    @property
    def under_way(self) -> UnderWay | None:
        """The rows that a real-time batch has read so far, some seconds old; None where Spark does not tell."""
        if self._metrics is not None and time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._under_way, self._looked_at = self._metrics.look() or self._under_way, time.monotonic()
        # A batch that Spark has reported on is under way no more.
        return self._under_way if self._under_way and self._under_way.batch > self._last_told else None

    @property
    def last_commit(self) -> int:
        """The newest batch that is committed; -1 before the first."""
        return self._logs.committed

    @property
    def share(self) -> float | None:
        """How much of what waited at the start is taken, from 0 to 1, where it can be told."""
        return self._backlog.share(self._storage, self.checkpoint) if self._backlog else None

    def explain(self, extended: bool = False) -> str:
        """The plan of the last batch."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self._started.explain(extended)
        return self._mask(printed.getvalue())

    def table(self) -> DataFrame:
        """The rows that a memory sink holds."""
        return self._built.session.table(f"`{self._built.query.sink.name}`")

    def await_termination(self, timeout_seconds: float | None = None) -> bool:
        """Waits until it ends, or the time is over; tells whether it has ended. A failure is told by `exception`."""
        from pyspark.errors import StreamingQueryException

        try:
            ended = self._started.awaitTermination(timeout_seconds)  # type: ignore[arg-type] # fractions are fine
        except StreamingQueryException:
            return True
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        """Stops it at once; a batch under way is run again at the next start."""
        self._started.stop()
        self._logs.write_down(self._built.session)

    def _plain(self, progress: Any) -> dict[str, Any]:
        text = progress.json if hasattr(progress, "json") else json.dumps(progress, default=str)
        plain: dict[str, Any] = json.loads(self._mask(text))
        return plain
