"""What to do after an event of a query. Pure: the same view, event, attempts and policy give the same decision."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.facts.failure import Failure
from penstock.notation.durations import to_words
from penstock.problems import Problem
from penstock.query.restarts import Policy
from penstock.supervise import events
from penstock.supervise.attempts import ABSENCES, Attempts
from penstock.supervise.events import Event
from penstock.supervise.query_view import QueryView

POISON = 3
"""A batch that fails this often in the same way will fail again."""
_JITTER = 0.25
"""The delay varies by this share, so that many queries do not return to a service in one moment."""


@dataclass(frozen=True)
class GoOn:
    """Nothing is to be done."""


@dataclass(frozen=True)
class Restart:
    """Start the query again on its checkpoint, after a delay."""

    delay_seconds: float
    reason: str
    planned: bool = False
    """Does it follow a schedule or a new schema, and not a failure?"""


@dataclass(frozen=True)
class StopQuery:
    """End this query; the others run on."""

    problem: Problem


@dataclass(frozen=True)
class StopPipeline:
    """End all queries of the pipeline, after their current batch."""

    problem: Problem


Decision = GoOn | Restart | StopQuery | StopPipeline


def decide(view: QueryView, event: Event, attempts: Attempts, policy: Policy, random: float = 0.5) -> Decision:
    """What follows from an event that `view` and `attempts` contain already. `random` is from 0 to 1."""
    match event:
        case events.BatchDone(progress=progress):
            limit = policy.max_bad_share
            if limit is not None and progress.bad_share > limit:
                return _stop(_too_many_bad(view, progress.bad_share, progress.batch, limit), policy)
        case events.RefreshDue(source=source):
            return _restart(f"`{source}` is refreshed", attempts, policy, random, planned=True)
        case events.Failed():
            return _after_failure(view, event, attempts, policy, random)
    return GoOn()


def _after_failure(
    view: QueryView, event: events.Failed, attempts: Attempts, policy: Policy, random: float
) -> Decision:
    failure, adapted = event.failure, event.adapted
    if attempts.alike(failure) >= POISON:
        return _stop(_poison(view, event, failure), policy)
    may_pass = adapted is not None or failure.may_pass or event.untried
    if not may_pass or attempts.count >= policy.most:
        return _stop(_after_restarts(failure.problem, attempts, event.at), policy)
    reason = f"`{adapted}` has a new schema" if adapted else failure.problem.message
    return _restart(reason, attempts, policy, random, planned=adapted is not None)


def _restart(reason: str, attempts: Attempts, policy: Policy, random: float, *, planned: bool) -> Decision:
    # What is planned does not wait, unless the last one showed no sign of life.
    exponent = attempts.count - 1 if planned else attempts.count
    delay = 0.0 if exponent < 0 else policy.first_delay_seconds * 2.0 ** min(exponent, 60)
    varied = min(delay, policy.longest_delay_seconds) * (1 + _JITTER * (2 * random - 1))
    return Restart(varied, reason, planned)


def _stop(problem: Problem, policy: Policy) -> Decision:
    return StopQuery(problem) if policy.on_failure == "stop_query" else StopPipeline(problem)


def _after_restarts(problem: Problem, attempts: Attempts, at: float) -> Problem:
    """The Problem of a query that gives up, with how often it was restarted and over how long."""
    count = attempts.count
    if not count:
        return problem
    times = "once" if count == 1 else f"{count} times"
    lasted = to_words(max(0.0, at - (at if attempts.since is None else attempts.since)) * 1_000)
    return replace(problem, message=f"{problem.message.rstrip('.')}. Penstock restarted it {times} in {lasted}")


def _poison(view: QueryView, event: events.Failed, failure: Failure) -> Problem:
    batch = "it" if failure.batch is None else f"batch {failure.batch}"
    place = "".join(f"; {source} reads {what}" for source, what in event.offsets.items())
    said = failure.problem.message.removeprefix(f"query `{view.name}` failed: ").rstrip(".")
    return replace(
        failure.problem,
        code="RUN003" if failure.problem.code in _GENERAL else failure.problem.code,
        message=f"query `{view.name}`: {batch} failed {POISON} times in the same way: {said}{place}",
    )


_GENERAL = ("RUN001",)
"""Codes that say no more than that a query failed."""


def _too_many_bad(view: QueryView, share: float, batch: int, limit: float) -> Problem:
    message = f"{share:.1%} of the rows of batch {batch} of query `{view.name}` were bad"
    fix = f"run `penstock dead-letters list` and fix their cause, or raise `max_bad_share` above {limit}"
    return Problem("RECORD002", message, fix)


def waits_for_absent(failure: Failure) -> bool:
    """Does the failure end when something that is away comes back?"""
    return failure.kind in ABSENCES
