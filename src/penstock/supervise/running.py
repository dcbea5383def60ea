"""One running query, as Python sees it."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.checkpoint import offset_ranges
from penstock.dead_letters import verdicts
from penstock.engine import record_times
from penstock.engine.build import OBSERVATION, Built, Started
from penstock.engine.failures import OwnProblem, failure_of, spark_died
from penstock.engine.under_way import BatchMetrics, UnderWay
from penstock.facts.failure import Failure, Kind
from penstock.facts.observed import ProgressFacts
from penstock.facts.raised import unsealed
from penstock.facts.thrown import Thrown
from penstock.metrics.progress import from_spark
from penstock.notation.durations import to_milliseconds
from penstock.notation.paths import is_local
from penstock.notation.references import Mask
from penstock.pipeline.model import Pipeline, Sink, Source
from penstock.problems import Fault, Problem, UserError
from penstock.query.guarantees import Guarantee
from penstock.query.restarts import Policy
from penstock.sinks.sink import SinkSpec
from penstock.sources import lag_meter
from penstock.sources.lag_meter import Committed, LagMeter
from penstock.sources.source import SourceSpec
from penstock.spark_internals import (
    SPARK_IS_GONE,
    JavaError,
    answers,
    release_copy,
    release_session,
    reports_since,
    thrown_by,
    thrown_by_query,
)
from penstock.storage.storage import Storage
from penstock.supervise.absence import Service, says_away
from penstock.supervise.backlog import Backlog
from penstock.supervise.input_files import InputFiles, PassedOver
from penstock.supervise.query_logs import QueryLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOOK_SECONDS = 1.0
_END_SECONDS = 60.0


class RunningQuery:
    """A handle on one query: what it is, what it does, and how to end it. Secrets are masked in all that it tells."""

    def __init__(
        self,
        pipeline: Pipeline,
        built: Built,
        started: Started,
        begin_again: Callable[[Built], tuple[Built, Started]],
        guarantee: Guarantee,
        checkpoint: str,
        mask: Mask,
        storage: Storage,
        policy: Policy,
        backlog: Backlog | None = None,
    ) -> None:
        self._pipeline, self._built, self._begin_again, self._mask = pipeline, built, begin_again, mask
        self._storage, self._backlog = storage, backlog
        self._failure: Failure | None = None
        self._since = time.monotonic()
        self.pipeline, self.checkpoint = pipeline.name, checkpoint
        streams = [source for source in pipeline.sources_of(self.name) if not source.spec.is_static]
        self._files = InputFiles(storage, checkpoint, streams, is_for_letters=pipeline.puts_aside(self.name))
        self._take(started)
        self.guarantee = guarantee
        self.policy = policy

    def _take(self, started: Started) -> None:
        self._started, self._trigger, self._writer = started.streaming, started.trigger, started.writer
        self._logs = QueryLogs(started, self._storage, self.checkpoint)
        # With asynchronous progress a number of a batch may come again.
        self._last_told: int = -1
        self.last_seen = ""
        """When Spark last reported, in its own words."""
        self._metrics: BatchMetrics | None = None
        if self._trigger.kind == "real_time":
            self._metrics = BatchMetrics(self._started, self._built.session)
        self._under_way: UnderWay | None = None
        self._looked_at = 0.0
        self._files.begin(self._started, self._built.session, lambda: self._logs.committed)

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
        try:
            status: dict[str, Any] = self._mask.deeply(dict(self._started.status))
        except SPARK_IS_GONE:
            return {}  # Spark is gone; `failure` says so
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
        failure = self.failure
        return failure.problem if failure else None

    @property
    def failure(self) -> Failure | None:
        """What stopped it, as a value; None while it runs and after it ended well."""
        if self._failure is not None:
            return self._failure
        told = None
        try:
            chain = thrown_by_query(self._started)
            if chain and self._writer is not None and self._writer.error is not None:
                chain, told = thrown_by(self._writer.error), self._told  # Spark reports only that Python code failed
        except SPARK_IS_GONE as error:
            self.fail_with(error)
            return self._failure
        if not chain:
            return None
        self._failure = self._judged(chain, self._failed_batch, told)
        return self._failure

    @property
    def retries_tasks(self) -> bool:
        """Does Spark run a failed task again, before the query fails?"""
        return self._trigger.retries_tasks

    def adapt(self) -> str | None:
        """After a failure: lets each source adapt to its cause, and names the one that did.

        A source that knows the cause and cannot adapt to it gives the failure its own Problem.
        """
        failure = self.failure
        if failure is None or failure.kind == "spark_died":
            return None
        for source in self._pipeline.sources_of(self.name):
            try:
                if source.spec.recover(failure, self._built.session, self.checkpoint):
                    return source.name
            except Fault as fault:
                problem = self._masked(fault.at(source.origin.at(*fault.keys)))
                kind = "source_away" if says_away(problem) else failure.kind
                self._failure = replace(failure, kind=kind, problem=problem)
                return None
            except SPARK_IS_GONE as error:
                self.fail_with(error)
                return None
        return None

    def restart(self) -> None:
        """Starts it again on its checkpoint, declared to Spark again. If that fails, `failure` says why."""
        try:
            self.await_termination(_END_SECONDS)  # until then its session has a query of this name
            release_copy(self._started)
            self._built, started = self._begin_again(self._built)
            self._take(started)
            self._since, self._failure = time.monotonic(), None
        except UserError as error:
            self._failure = self._of_problem(error.problems[0], "source_away")

    def fail_with(self, error: BaseException) -> None:
        """Makes `failure` say what a call raised: Spark has ended, or something else went wrong.

        Services raise a ConnectionError too. So Spark is asked whether it still answers.
        """
        if isinstance(error, JavaError) or answers(self._built.session):
            self._failure = self._judged(thrown_by(error), self._failed_batch)
        else:
            self._failure = spark_died(self._built.query)

    def _judged(self, chain: tuple[Thrown, ...], batch: int | None, told: OwnProblem | None = None) -> Failure:
        query, session = self._built.query, self._built.session
        return failure_of(chain, query, self._pipeline, session, self._mask, self.checkpoint, batch, told)

    @property
    def _told(self) -> OwnProblem | None:
        """What a sink or a source reported about the failure of a batch."""
        if self._writer is None or (problem := self._writer.problem or self._writer.refused) is None:
            return None
        sink = self._writer.writing if self._writer.problem else None
        return OwnProblem(problem, sink, says_away(problem))

    @property
    def stale_source(self) -> str | None:
        """A static source that only a restart can refresh, and that was kept for longer than it should."""
        intervals = {
            to_milliseconds(refresh) / 1_000: source.name
            for source in self._pipeline.sources_of(self.name)
            if (refresh := getattr(source.spec, "refresh", None)) not in (None, "batch")
        }
        return intervals[min(intervals)] if intervals and time.monotonic() - self._since >= min(intervals) else None

    @property
    def services(self) -> tuple[Service, ...]:
        """The sources and sinks that can be asked whether they are there."""
        nodes: list[Source | Sink] = [*self._pipeline.sources_of(self.name), *self._built.query.sinks]
        return tuple(
            Service(
                node.name, "source" if isinstance(node, Source) else "sink", node.spec.probe, partial(self._at, node)
            )
            for node in nodes
            if type(node.spec).probe not in (SourceSpec.probe, SinkSpec.probe)
        )

    @property
    def lag_meters(self) -> dict[str, LagMeter]:
        """By source, what counts the rows that wait for this query, where the source can be asked."""
        streams = [source for source in self._pipeline.sources_of(self.name) if not source.spec.is_static]
        return {source.name: meter for source in streams if (meter := source.spec.lag_meter()) is not None}

    def committed(self, last: ProgressFacts | None) -> Committed:
        """Up to where it has committed: as the last batch of this run says, before the first as its checkpoint does."""
        if last is not None:
            offsets = lag_meter.in_progress(last.raw.get("sources") or ())
        else:
            # A remote storage is not listed every few seconds: the first batch will tell.
            offsets = lag_meter.in_checkpoint(self._storage, self.checkpoint) if is_local(self.checkpoint) else ()
        return Committed(offsets, self._storage, self.checkpoint)

    def offsets_of(self, batch: int | None) -> dict[str, str]:
        """By source, from where to where a batch reads, as far as its checkpoint shows."""
        if batch is None:
            return {}
        names = [source.name for source in self._pipeline.sources_of(self.name) if not source.spec.is_static]
        try:
            return offset_ranges.ranges_of(self._storage, self.checkpoint, batch, names)
        except (OSError, ValueError):
            return {}

    def placed(self, problem: Problem) -> Problem:
        """A Problem at the query's line if it has no place of its own, without secrets."""
        return self._masked(replace(problem, where=problem.where or self._built.query.origin.where))

    def _at(self, node: Source | Sink, fault: Fault) -> Problem:
        return self._masked(fault.at(node.origin.at(*fault.keys)))

    def _of_problem(self, problem: Problem, away: Kind) -> Failure:
        """A failure that has its Problem already: what a source, a sink or a new start says."""
        problem = self._masked(problem)
        kind = away if says_away(problem) else "other"
        return Failure(kind, problem, f"{problem.code} {problem.message}", self._failed_batch)

    @property
    def _failed_batch(self) -> int | None:
        with contextlib.suppress(OSError):  # the storage itself may be what failed
            return self._logs.under_way
        return None

    def _masked(self, problem: Problem) -> Problem:
        return replace(problem, message=self._mask(problem.message), fix=self._mask(problem.fix))

    def new_progress(self) -> list[ProgressFacts]:
        """The batches that were finished since it was asked last, oldest first, as far as Spark still knows them."""
        try:
            last = self._started.lastProgress
            if last is None or last["timestamp"] == self.last_seen:
                self._look_for_files(())
                return []
        except SPARK_IS_GONE:
            return []  # Spark is gone; `exception` says so
        self.last_seen = last["timestamp"]
        # An idle trigger reports too, under the number of a batch that is still to come.
        executed = [one for one in self._reported_since(self._last_told) if "addBatch" in one["durationMs"]]
        newest = {int(one["batchId"]): one for one in reversed(executed)}
        self._last_told = max(newest, default=self._last_told)
        self._look_for_files(sorted(newest))
        observed = (OBSERVATION, verdicts.OBSERVED, record_times.TIMES)
        return [from_spark(self.name, newest[n], *observed) for n in sorted(newest)]

    def new_passed_over(self) -> list[PassedOver]:
        """Files and lines that Spark has passed over since it was asked last, where the source allows it."""
        return self._files.new_passed_over()

    def _look_for_files(self, reported: Sequence[int]) -> None:
        """Stops the query if its files were not read as they should; `failure` says which and why."""
        if self._failure is not None or (lost := self._files.look(reported, wait=not self.is_active)) is None:
            return
        self._started.stop()
        stopped_by = self._files.failure_of(lost)
        self._failure = replace(stopped_by, problem=self._masked(stopped_by.problem))

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
        return self._backlog.share if self._backlog else None

    def explain(self, extended: bool = False) -> str:
        """The plan of the last batch."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self._started.explain(extended)
        return self._mask(unsealed(printed.getvalue()))

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

    def release(self) -> None:
        """Lets Spark forget what it keeps of a query that is stopped for good."""
        release_copy(self._started)
        release_session(self._built.session)

    def _plain(self, progress: Any) -> dict[str, Any]:
        text = progress.json if hasattr(progress, "json") else json.dumps(progress, default=str)
        plain: dict[str, Any] = json.loads(self._mask(text))
        return plain
