"""A run at one moment: a fold over its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from penstock.dead_letters.bad_records import DECODED
from penstock.facts.observed import ProgressFacts, Unread
from penstock.metrics.progress import pause_ms
from penstock.problems import Problem
from penstock.supervise import events
from penstock.supervise.events import Event

State = Literal["starting", "running", "waiting", "restarting", "stopping", "done", "stopped", "failed"]
ENDED: frozenset[State] = frozenset({"done", "stopped", "failed"})


@dataclass(frozen=True)
class QueryView:
    """One query at one moment."""

    pipeline: str
    name: str
    id: str
    promise: str
    state: State = "running"
    run: str = ""
    """Spark's name for the current start."""
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
    missing_files: int = 0
    """Files that were gone before Spark read them, and that it passed over."""
    read: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By source, the rows that were read and the place up to which."""
    phases: Mapping[str, int] = field(default_factory=dict)
    """What its batches spent their time with, in milliseconds."""
    restarts: int = 0
    restarting_because: str | None = None
    """Why it restarts, while it does not run."""
    restarts_at: float | None = None
    """When it restarts, in seconds since 1970."""
    away: Mapping[str, events.Away] = field(default_factory=dict)
    """By source or sink, since when and why it cannot be reached."""
    last: ProgressFacts | None = None
    last_at: float | None = None
    """When the last batch was seen to be done, in seconds since 1970."""
    pause_ms: int | None = None
    """How long no record was taken between the last two batches, where that is measured."""
    longest_pause_ms: int | None = None
    under_way: int = 0
    """Rows of a real-time batch that has not ended yet; `rows_in` has them when it has."""
    under_way_per_second: float | None = None
    share: float | None = None
    """How much of what waited at the start is taken, from 0 to 1, where it can be told."""
    lag: Mapping[str, Unread] = field(default_factory=dict)
    """By source, what it had that the query had not committed, when it was last asked."""
    lag_at: float | None = None
    """When that was, in seconds since 1970."""
    problem: Problem | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

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
            "missing_files": self.missing_files,
            "milliseconds": dict(self.phases),
            "restarts": self.restarts,
            "away": sorted(self.away),
            "lag": {source: asdict(unread) for source, unread in self.lag.items()},
            "lag_at": self.lag_at,
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


def fold(view: QueryView, event: Event) -> QueryView:  # noqa: PLR0911, PLR0912 - one for each event
    """The view after an event."""
    match event:
        case events.QueryStarted(id=id_, run=run, promise=promise):
            return replace(
                view, id=id_, run=run, promise=promise, state="running", restarting_because=None, restarts_at=None
            )
        case events.Working():
            return replace(view, state="running") if view.state == "waiting" else view
        case events.Idle():
            return replace(view, state="waiting") if view.state == "running" else view
        case events.RowsRead(rows=rows, rows_per_second=rate):
            return replace(view, under_way=rows, under_way_per_second=rate)
        case events.BacklogTaken(share=share):
            return replace(view, share=share)
        case events.LagSeen(unread=unread, at=at):
            return replace(view, lag=unread, lag_at=at)
        case events.BatchDone(progress=progress, at=at):
            return replace(_with_batch(view, progress), last_at=at)
        case events.FilesPassedOver(files=files):
            return replace(view, missing_files=view.missing_files + files)
        case events.LinesDropped(source=source, lines=lines):
            checks = _added(view.checks, {f"{source}.{DECODED}": len(lines)})
            return replace(view, bad_rows=view.bad_rows + len(lines), checks=checks)
        case events.Away(node=node):
            return replace(view, away={**view.away, node: event})
        case events.Back(node=node):
            return replace(view, away={name: one for name, one in view.away.items() if name != node})
        case events.Restarting(reason=reason, delay_seconds=delay, number=number, at=at):
            return replace(
                view,
                state="restarting",
                restarts=number,
                restarting_because=reason,
                restarts_at=at + delay,
                under_way=0,
            )
        case events.Stopping():
            return view if view.has_ended else replace(view, state="stopping")
        case events.Stopped(state=state, problem=problem):
            taken = 1.0 if state == "done" else view.share
            return replace(view, state=state, problem=problem, share=taken, restarting_because=None, restarts_at=None)
    return view


def _with_batch(view: QueryView, progress: ProgressFacts) -> QueryView:
    pause = pause_ms(view.last, progress)
    pauses = [one for one in (view.longest_pause_ms, pause) if one is not None]
    return replace(
        view,
        batches=view.batches + 1,
        rows_in=view.rows_in + progress.rows_in,
        rows_out=view.rows_out + (progress.rows_out or 0),
        late_rows=view.late_rows + progress.late_rows,
        late_groups=view.late_groups + progress.late_groups,
        bad_rows=view.bad_rows + progress.refused,
        checks=_added(view.checks, _checks_of(progress)),
        set_aside=_added(view.set_aside, progress.set_aside),
        read={name: _further(view.read.get(name), rows, end) for name, (rows, end) in progress.read.items()},
        pause_ms=pause,
        longest_pause_ms=max(pauses, default=None),
        under_way=0,
        phases=_added(view.phases, progress.phases),
        last=progress,
    )


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
