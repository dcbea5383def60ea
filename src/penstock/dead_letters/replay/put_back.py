"""Puts dead letters back where they came from, once: plans, then sends under a lock."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from penstock.checkpoint.lock import lock_folder
from penstock.checkpoint.watermarks import Horizon, horizons
from penstock.dead_letters.letters import Letter, LetterFilter
from penstock.dead_letters.opened import Opened, chosen
from penstock.dead_letters.replay.arrived import put_back_before
from penstock.dead_letters.replay.corrected import Corrected, read_corrected, require_copies
from penstock.dead_letters.replay.locking import alone
from penstock.dead_letters.replay.outcome import ReplayOutcome, Status, problems_of
from penstock.dead_letters.replay.planning import Planner, ReplayOptions
from penstock.dead_letters.replay.sending import Sender
from penstock.engine import resolve
from penstock.pipeline.model import Pipeline
from penstock.problems import Problem, errors_in


@dataclass(frozen=True)
class ReplayResult:
    """What became of each letter that was meant."""

    outcomes: tuple[ReplayOutcome, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not errors_in(self.problems)

    @property
    def has_failed(self) -> bool:
        """Did something that was to be sent not arrive?"""
        return any(outcome.status == "failed" for outcome in self.outcomes)

    @property
    def counts(self) -> Counter[Status]:
        return Counter(outcome.status for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "counts": dict(self.counts),
            "letters": [outcome.to_json() for outcome in self.outcomes],
            "problems": [problem.to_json() for problem in self.problems],
        }


def put_back(project: Opened, choice: LetterFilter, options: ReplayOptions) -> ReplayResult:
    """Raises UserError before anything is sent; what happens then is in the result."""
    corrected = read_corrected(options.corrected) if options.corrected is not None else None
    if corrected is not None:
        choice = replace(choice, ids=tuple(corrected))
    outcomes: list[ReplayOutcome] = []
    problems: list[Problem] = [*project.problems]
    for pipeline, letters in chosen(project, choice):
        if corrected is not None:
            require_copies(letters, corrected, options.corrected)
        with nullcontext() if options.dry_run else alone(lock_folder(project.project), pipeline.name):
            ended, stops = _replayed(project, pipeline, letters, corrected, options)
        outcomes += ended
        problems += resolve.masked(stops, project.project, os.environ)
    stopped = {problem.message for problem in problems}
    problems += problems_of([outcome for outcome in outcomes if outcome.why not in stopped])
    return ReplayResult(tuple(outcomes), tuple(problems))


def _replayed(
    project: Opened, pipeline: Pipeline, letters: list[Letter], corrected: Corrected | None, options: ReplayOptions
) -> tuple[list[ReplayOutcome], list[Problem]]:
    """What became of the letters of one pipeline, and what stopped the sending."""

    @cache
    def horizons_of(source: str) -> Sequence[Horizon]:
        return horizons(project.storage(project.root), project.root, pipeline, source)

    done = {} if options.again else put_back_before(project, pipeline, dry_run=options.dry_run)
    plan = Planner(pipeline, options, done, horizons_of).plan(letters, corrected)
    sender = Sender(project, pipeline, dry_run=options.dry_run)
    sent = [outcome for to_send in plan.to_send.values() for outcome in sender.send(to_send)]
    return [*plan.decided, *sent], sender.problems
