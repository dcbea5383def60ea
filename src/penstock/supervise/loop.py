"""Watches running queries until they end, or are asked to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from penstock.facts.observed import ProgressFacts
from penstock.metrics.progress import pause_ms
from penstock.metrics.recent_rate import RecentRate
from penstock.problems import Problem
from penstock.supervise.running import RunningQuery

State = Literal["running", "waiting", "stopping", "done", "stopped", "failed"]
_TICK_SECONDS = 0.2
_STOPPING_TICK_SECONDS = 0.02
_PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class QueryView:
    """One query at one moment."""

    pipeline: str
    name: str
    id: str
    promise: str
    state: State = "running"
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late_rows: int = 0
    late_groups: int = 0
    """Aggregations drop groups of rows, and do not say how many rows were in them."""
    bad_rows: int = 0
    """Rows that were bad and did not go on: dropped, or put aside."""
    checks: Mapping[str, int] = field(default_factory=dict)
    """By `node.check`, the rows that failed it."""
    set_aside: Mapping[str, int] = field(default_factory=dict)
    """By source or step, the rows that became dead letters."""
    read: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By source, the rows that were read and the place up to which."""
    phases: Mapping[str, int] = field(default_factory=dict)
    """What its batches spent their time with, in milliseconds."""
    restarts: int = 0
    last: ProgressFacts | None = None
    pause_ms: int | None = None
    """How long no record was taken between the last two batches, where that is measured."""
    longest_pause_ms: int | None = None
    under_way: int = 0
    """Rows of a real-time batch that has not ended yet; `rows_in` has them when it has."""
    under_way_per_second: float | None = None
    share: float | None = None
    """How much of what waited at the start is taken, from 0 to 1, where it can be told."""
    problem: Problem | None = None

    def to_json(self) -> dict[str, Any]:
        last = self.last
        return {
            "pipeline": self.pipeline,
            "query": self.name,
            "id": self.id,
            "guarantee": self.promise,
            "state": self.state,
            "batches": self.batches,
            "rows_in": self.rows_in,
            "rows_under_way": self.under_way,
            "rows_out": self.rows_out,
            "late_rows": self.late_rows,
            "late_groups": self.late_groups,
            "bad_rows": self.bad_rows,
            "checks": dict(self.checks),
            "milliseconds": dict(self.phases),
            "restarts": self.restarts,
            "last_batch": last and last.batch,
            "watermark": last and last.watermark,
            "latency": {source: asdict(times) for source, times in last.times.items()} if last else {},
            "pause_ms": self.pause_ms,
            "longest_pause_ms": self.longest_pause_ms,
            "problem": self.problem and self.problem.to_json(),
        }


@dataclass(frozen=True)
class Snapshot:
    """All queries of a run at one moment."""

    elapsed_seconds: float
    queries: tuple[QueryView, ...]
    stopping: bool = False


class Stop:
    """How a run is asked to end: once to let the batches under way commit, twice to end at once."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._at_once = threading.Event()

    def ask(self) -> None:
        (self._at_once if self._asked.is_set() else self._asked).set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    @property
    def at_once(self) -> bool:
        return self._at_once.is_set()


def watch(
    queries: Sequence[RunningQuery],
    stop: Stop,
    on_snapshot: Callable[[Snapshot], None],
    for_seconds: float | None = None,
) -> Snapshot:
    """Returns when every query has ended. One that fails ends the others: nobody runs on half a pipeline."""
    began = time.monotonic()
    views = {id(q): QueryView(q.pipeline, q.name, q.id, q.guarantee.promise) for q in queries}
    drain: _Drain | None = None
    refreshed: dict[int, _Drain] = {}
    rates = {id(q): RecentRate() for q in queries}
    while True:
        elapsed = time.monotonic() - began
        if for_seconds is not None and elapsed >= for_seconds and not stop.asked:
            stop.ask()
        if stop.asked:
            drain = drain or _Drain()
            for query in queries:
                drain.go_on(query, stop.at_once)
        # Asked before they are looked at: one that ends or fails in between is seen in the next round.
        any_active = any(query.is_active for query in queries)
        restarts = sum(view.restarts for view in views.values())
        for query in queries:
            view = _with_share(look(query, views[id(query)], stop.asked), query)
            view = _with_under_way(view, query, rates[id(query)], elapsed)
            views[id(query)] = view if stop.asked else _cared_for(query, view, refreshed)
        snapshot = Snapshot(elapsed, tuple(views.values()), stop.asked)
        on_snapshot(snapshot)
        if sum(view.restarts for view in views.values()) > restarts:
            continue  # one that has just started may have ended again: it is looked at before that counts
        if not any_active:
            return snapshot
        if any(view.state == "failed" for view in views.values()) and not stop.asked:
            stop.ask()
        time.sleep(_STOPPING_TICK_SECONDS if stop.asked else _TICK_SECONDS)


def look(query: RunningQuery, before: QueryView, stopping: bool) -> QueryView:
    """The view of a query now, from the view before."""
    # Asked before its progress is read: a query that ends in between is seen as active once more, never half-read.
    active = query.is_active
    view = before
    for progress in query.new_progress():
        pause = pause_ms(view.last, progress)
        pauses = [one for one in (view.longest_pause_ms, pause) if one is not None]
        view = replace(
            view,
            batches=view.batches + 1,
            rows_in=view.rows_in + progress.rows_in,
            rows_out=view.rows_out + (progress.rows_out or 0),
            late_rows=view.late_rows + progress.late_rows,
            late_groups=view.late_groups + progress.late_groups,
            bad_rows=view.bad_rows + progress.refused,
            checks=_added(view.checks, _checks_of(progress)),
            set_aside=_added(view.set_aside, {n: c["dead_letters"] for n, c in progress.checks.items()}),
            read={name: _further(view.read.get(name), rows, end) for name, (rows, end) in progress.read.items()},
            pause_ms=pause,
            longest_pause_ms=max(pauses, default=None),
            under_way=0,
            phases=_added(view.phases, progress.phases),
            last=progress,
        )
    if active:
        waiting = not query.status.get("isTriggerActive", False)
        return replace(view, state="stopping" if stopping else "waiting" if waiting else "running")
    problem = query.exception
    if problem is not None:
        return replace(view, state="failed", problem=problem)
    return replace(view, state="stopped" if stopping else "done")


def _cared_for(query: RunningQuery, view: QueryView, refreshed: dict[int, _Drain]) -> QueryView:
    """Breaks off what is bad, starts again what can go on, and refreshes what a restart alone can refresh."""
    if view.state == "failed":
        if not query.mend():
            return replace(view, problem=query.exception)
        return _restarted(query, view)
    if view.state == "done":
        return view
    problem = too_many_bad(view, query.max_bad_share)
    if problem is not None:
        query.break_off(problem)
        return replace(view, state="failed", problem=query.exception)
    if id(query) in refreshed or query.is_stale:
        refreshed.setdefault(id(query), _Drain()).go_on(query, at_once=False)
        if not query.is_active:
            del refreshed[id(query)]
            return _restarted(query, view)
    return view


def _restarted(query: RunningQuery, view: QueryView) -> QueryView:
    query.restart()
    return replace(view, state="running", problem=None, restarts=view.restarts + 1)


def too_many_bad(view: QueryView, limit: float | None) -> Problem | None:
    """The breaker: is the share of bad rows in the last batch greater than it may be?"""
    if limit is None or view.last is None or view.last.bad_share <= limit:
        return None
    message = f"{view.last.bad_share:.1%} of the rows of batch {view.last.batch} of query `{view.name}` were bad"
    fix = f"see `penstock dead-letters list` and mend their cause, or raise `max_bad_share` above {limit}"
    return Problem("RECORD002", message, fix)


def _checks_of(progress: ProgressFacts) -> dict[str, int]:
    return {
        f"{node}.{name.removeprefix('check.')}": count
        for node, checks in progress.checks.items()
        for name, count in checks.items()
        if name.startswith("check.")
    }


def _added(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}


def _further(before: tuple[int, str] | None, rows: int, end: str) -> tuple[int, str]:
    return (before[0] if before else 0) + rows, end


def _with_share(view: QueryView, query: RunningQuery) -> QueryView:
    return replace(view, share=1.0 if view.state == "done" else query.share)


def _with_under_way(view: QueryView, query: RunningQuery, rate: RecentRate, elapsed: float) -> QueryView:
    if view.state not in ("running", "waiting"):
        return view  # the last that was known stays: those rows are not counted any more
    under_way = query.under_way
    if under_way is None:
        return replace(view, under_way=0)
    rate.add(elapsed, view.rows_in + under_way.rows)
    return replace(view, under_way=under_way.rows, under_way_per_second=rate.per_second)


class _Drain:
    """Stops queries once the batch that was under way has committed: `stop()` in its middle would undo its work."""

    def __init__(self) -> None:
        self._awaited: dict[int, int | None] = {}
        self._committed_since: dict[int, float] = {}

    def go_on(self, query: RunningQuery, at_once: bool) -> None:
        if query.is_active and (at_once or self._has_committed(query)):
            query.stop()

    def _has_committed(self, query: RunningQuery) -> bool:
        # Looked at just before it is stopped: while another query was being stopped, this one may have begun a batch.
        awaited = self._awaited.setdefault(id(query), query.batch_under_way)
        if awaited is None:
            return True
        if query.last_commit < awaited:
            return False
        # Spark tells of a batch just after its commit; without a moment's patience its rows would not be counted.
        since = self._committed_since.setdefault(id(query), time.monotonic())
        last = query.last_progress
        return bool(last and int(last["batchId"]) >= awaited) or time.monotonic() - since > _PATIENCE_SECONDS
