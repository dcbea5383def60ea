"""One query under supervision: what is seen of it becomes events, and what is decided is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from penstock.metrics.recent_rate import RecentRate
from penstock.problems import Problem
from penstock.query.restarts import Policy
from penstock.spark_internals import SPARK_IS_GONE
from penstock.supervise import decide, events
from penstock.supervise.absence import SILENT_SECONDS, Absence
from penstock.supervise.attempts import Attempts, after
from penstock.supervise.dropped_lines import Dropped
from penstock.supervise.events import Event
from penstock.supervise.lag import LagPoller
from penstock.supervise.query_view import QueryView, fold
from penstock.supervise.running import RunningQuery
from penstock.supervise.stopping import Drain

Phase = Literal["running", "waiting", "ended"]
_WAITING = "Waiting"
"""How Spark's status begins between two triggers, and never before the first is done."""


class Watch:
    """Looks at a query, emits what has happened, and acts as decided. `look()` is called every few moments."""

    def __init__(
        self, query: RunningQuery, policy: Policy, emit: Callable[[Event], None], random: Callable[[], float]
    ) -> None:
        self.query, self.policy = query, policy
        self.view = QueryView(query.pipeline, query.name, query.id, query.guarantee.promise)
        self.attempts = Attempts()
        self.phase: Phase = "running"
        self.stops_pipeline = False
        self._emit, self._random = emit, random
        self._absence = Absence(query.services)
        self._drain: Drain | None = None
        self._stopping = False
        self._stale: str | None = None
        self._restart_at, self._failed = 0.0, None  # type: float, events.Failed | None
        self._rate, self._began = RecentRate(), time.monotonic()
        self._looked_idle = False
        self._alive_at = time.monotonic()
        self._seen = ""
        self._lag = LagPoller(query.lag_meters, lambda: query.committed(self.view.last))

    @property
    def has_ended(self) -> bool:
        return self.phase == "ended"

    def begin(self) -> None:
        """The query has just been started."""
        self._happened(events.QueryStarted, id=self.query.id, run=self.query.run_id, promise=self.view.promise)
        self._report_share()
        self._lag.begin()

    def stop(self, *, at_once: bool) -> None:
        """Lets the batch under way commit, then ends the query. Called again and again until it has ended."""
        if not self._stopping and not self.has_ended:
            self._happened(events.Stopping)
        self._stopping = True
        if self.phase == "running":
            self._drain = self._drain or Drain(self.query)
            with self._told_if_spark_is_gone():
                self._drain.go_on(at_once=at_once)

    def look(self) -> None:
        """Emits what has happened since the last look, and acts on it."""
        self._report_lag()
        with self._told_if_spark_is_gone():
            if self.phase == "running":
                self._look_at_run()
            elif self.phase == "waiting":
                self._look_at_wait()

    @contextmanager
    def _told_if_spark_is_gone(self) -> Iterator[None]:
        """Any call of a running query can be the one that finds the JVM ended."""
        try:
            yield
        except SPARK_IS_GONE as error:
            self.query.fail_with(error)
            self._fails()

    def _look_at_run(self) -> None:
        # Asked before its progress is read: a query that ends in between is seen as active once more, never half-read.
        active = self.query.is_active
        done = self.query.new_progress()
        for lost in self.query.new_passed_over():
            given: dict[str, Any] = {"source": lost.source.name, "batch": lost.batch}
            if isinstance(lost, Dropped):
                given |= {"file": lost.file, "lines": lost.lines, "message": lost.message}
                self._happened(events.LinesDropped, **given)
            else:
                self._happened(events.FilesPassedOver, files=len(lost.files), example=lost.files[0], **given)
        for progress in done:
            aside = {node: rows for node, rows in progress.set_aside.items() if rows}
            self._return_from_absence()
            decision = self._happened(events.BatchDone, progress=progress)
            if aside:
                self._happened(events.RowsSetAside, batch=progress.batch, rows=aside)
            self._report_share()
            if not isinstance(decision, decide.GoOn):
                self.query.stop()
                self._act(decision)
                return
        if not active:
            self._look_at_end()
            return
        self._report_state()
        self._look_at_services()
        if self._stopping:
            return
        self._stale = self._stale or self.query.stale_source
        if self._stale is not None:
            self._drain = self._drain or Drain(self.query)
            self._drain.go_on(at_once=False)

    def _look_at_end(self) -> None:
        failure = self.query.failure
        if failure is not None:
            adapted = None if self._stopping else self.query.adapt()
            self._fails(adapted)
        elif self._stopping:
            self._end("stopped")
        elif self._stale is not None:
            self._act(self._happened(events.RefreshDue, source=self._stale))
        else:
            self._end("done")

    def _fails(self, adapted: str | None = None) -> None:
        failure = self.query.failure
        assert failure is not None  # noqa: S101 - for the type checker: the callers have looked
        if adapted is not None:
            self._happened(events.SchemaChanged, source=adapted)
        offsets = self.query.offsets_of(failure.batch)
        untried = not self.query.retries_tasks and failure.kind in ("other", "user_code")
        given: dict[str, Any] = {"failure": failure, "adapted": adapted, "untried": untried, "offsets": offsets}
        decision = self._happened(events.Failed, **given)
        if self._stopping:
            self._end("failed", failure.problem)
        else:
            self._act(decision)

    def _act(self, decision: decide.Decision) -> None:
        match decision:
            case decide.Restart(delay_seconds=delay, reason=reason, planned=planned):
                number = self.attempts.made + 1
                self._happened(events.Restarting, reason=reason, delay_seconds=delay, number=number, planned=planned)
                self.phase, self._drain, self._stale = "waiting", None, None
                self._restart_at = time.monotonic() + delay
                self._look_at_wait()
            case decide.StopQuery(problem=problem):
                self._end("failed", problem)
            case decide.StopPipeline(problem=problem):
                self.stops_pipeline = True
                self._end("failed", problem)

    def _look_at_wait(self) -> None:
        if self._stopping:
            self._end(*(("failed", self.query.exception) if self.query.exception else ("stopped", None)))
            return
        was_away = bool(self._absence.away)
        absent = self.query.failure is not None and decide.waits_for_absent(self.query.failure)
        self._look_at_services(worried=absent)
        if absent and self._absence.away:
            if time.monotonic() >= self._restart_at:
                self._fails()  # an attempt that Spark need not make
            return
        came_back = was_away and not self._absence.away
        if came_back or time.monotonic() >= self._restart_at:
            self._restart()

    def _restart(self) -> None:
        self.phase = "running"
        self._alive_at = time.monotonic()
        self.query.restart()
        if self.query.failure is not None and not self.query.is_active:
            self._fails()
        else:
            self.begin()

    def _end(self, state: events.Ending, problem: Problem | None = None) -> None:
        self.phase = "ended"
        self._lag.end()
        self._happened(events.Stopped, state=state, problem=problem and self.query.placed(problem))

    def _report_state(self) -> None:
        if self._stopping:
            return
        status = self.query.status
        idle = not status.get("isTriggerActive", False) and str(status.get("message", "")).startswith(_WAITING)
        if idle and self._looked_idle and self.view.state == "running":
            self._happened(events.Idle)
        elif not idle and self.view.state == "waiting":
            self._happened(events.Working)
        self._looked_idle = idle
        if idle or self._seen != self.query.last_seen:
            self._seen, self._alive_at = self.query.last_seen, time.monotonic()
        under_way = self.query.under_way
        if under_way is not None:
            self._rate.add(time.monotonic() - self._began, self.view.rows_in + under_way.rows)
            rate = self._rate.per_second
            if (under_way.rows, rate) != (self.view.under_way, self.view.under_way_per_second):
                self._happened(events.RowsRead, batch=under_way.batch, rows=under_way.rows, rows_per_second=rate)

    def _look_at_services(self, *, worried: bool = False) -> None:
        silent = time.monotonic() - self._alive_at >= SILENT_SECONDS
        for service, problem in self._absence.look(worried=worried or silent):
            if problem is not None and service.node not in self.view.away:
                self._happened(events.Away, node=service.node, side=service.side, problem=problem)
            elif problem is None:
                self._is_back(service.node)

    def _return_from_absence(self) -> None:
        """A batch is done, so everything can be reached."""
        for node in tuple(self.view.away):
            if node not in self._absence.away:
                self._is_back(node)

    def _is_back(self, node: str) -> None:
        if away := self.view.away.get(node):
            self._happened(events.Back, node=node, side=away.side, seconds=max(0.0, time.time() - away.at))

    def _report_share(self) -> None:
        share = self.query.share
        if share is not None and share != self.view.share:
            self._happened(events.BacklogTaken, share=share)

    def _report_lag(self) -> None:
        seen = self._lag.seen
        if seen is not None and seen.at != self.view.lag_at and not self.has_ended:
            self._happened(events.LagSeen, at=seen.at, unread=seen.unread)

    def _happened(self, kind: type[Event], **given: Any) -> decide.Decision:
        at = given.pop("at", None) or time.time()
        event = kind(pipeline=self.view.pipeline, query=self.view.name, at=at, **given)
        self.view = fold(self.view, event)
        self.attempts = after(self.attempts, event, self.policy.quiet_seconds)
        self._emit(event)
        return decide.decide(self.view, event, self.attempts, self.policy, self._random())
