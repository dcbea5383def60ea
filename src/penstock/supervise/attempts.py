"""What a query's restarts were so far: a fold over its events."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.facts.failure import Failure, Kind
from penstock.supervise import events
from penstock.supervise.events import Event

ABSENCES: frozenset[Kind] = frozenset({"source_away", "sink_away", "disk_full"})
"""Failures that say something about the world and nothing about the batch."""
Way = tuple[Kind, str, int | None]
"""In which way a batch failed: two failures are alike when these are equal."""


@dataclass(frozen=True)
class Attempts:
    """The restarts that count, and the failures since the last committed batch."""

    restarts: int = 0
    """Restarts after a failure, since the count was cleared."""
    planned: int = 0
    """Restarts for a new schema or a refresh, since the last sign of life."""
    made: int = 0
    """All restarts of this run. It never clears."""
    since: float | None = None
    """When the first of those began that count now, in seconds since 1970."""
    quiet_since: float | None = None
    """Since when the query runs without a failure."""
    failures: tuple[Way, ...] = ()

    @property
    def count(self) -> int:
        """How many restarts count now."""
        return self.restarts + self.planned

    def alike(self, failure: Failure) -> int:
        """How often the batch has failed in this way."""
        return self.failures.count(way_of(failure))


def way_of(failure: Failure) -> Way:
    return failure.kind, failure.cause, failure.batch


def after(attempts: Attempts, event: Event, quiet_seconds: float) -> Attempts:
    """The attempts after an event.

    A quiet time clears the count. A committed batch, or an idle query, shows that a planned restart went well: it does
    not count any more. So a query with `refresh: 1 minute` lives on, and one that restarts without a sign of life ends.
    """
    quiet = attempts.quiet_since
    if quiet is not None and event.at - quiet >= quiet_seconds:
        attempts = replace(attempts, restarts=0)
    match event:
        case events.QueryStarted(at=at):
            attempts = replace(attempts, quiet_since=at) if attempts.quiet_since is None else attempts
        case events.Failed(failure=failure, adapted=adapted, at=at):
            ways = attempts.failures if failure.kind in ABSENCES else (*attempts.failures, way_of(failure))
            quiet = attempts.quiet_since if adapted else None
            attempts = replace(attempts, failures=ways, quiet_since=quiet, since=_first(attempts.since, at))
        case events.Restarting(planned=planned, at=at):
            counted = replace(attempts, made=attempts.made + 1, since=_first(attempts.since, at))
            if planned:
                return replace(counted, planned=attempts.planned + 1)
            return replace(counted, restarts=attempts.restarts + 1)
        case events.BatchDone():
            attempts = replace(attempts, planned=0, failures=())
        case events.Idle():
            attempts = replace(attempts, planned=0)
    return replace(attempts, since=attempts.since if attempts.count or isinstance(event, events.Failed) else None)


def _first(since: float | None, at: float) -> float:
    return at if since is None else since
