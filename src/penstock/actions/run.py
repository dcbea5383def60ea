"""Runs pipelines under supervision."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import crash_points
from penstock.checkpoint.lock import lock_folder, require_free
from penstock.engine import resolve
from penstock.pipeline.load import load
from penstock.prepare.judging import judge_all
from penstock.prepare.needs import StartEngine, needs_of
from penstock.prepare.probing import probed
from penstock.prepare.ready import build_with
from penstock.problems import Problem, errors_in
from penstock.query.triggers import Trigger
from penstock.supervise.agreement import disagreements
from penstock.supervise.query_view import QueryView, Snapshot
from penstock.supervise.stages import StagedRun, in_stages
from penstock.supervise.starting import lock_all
from penstock.supervise.stopping import Stop
from penstock.supervise.supervisor import Listener, Listeners


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    queries: tuple[QueryView, ...] = ()
    problems: tuple[Problem, ...] = ()
    elapsed_seconds: float = 0.0
    started: bool = False

    @property
    def ok(self) -> bool:
        return not errors_in(self.problems)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "started": self.started,
            "elapsed_seconds": round(self.elapsed_seconds, 3),
            "queries": [query.to_json() for query in self.queries],
            "problems": [problem.to_json() for problem in self.problems],
        }


@dataclass(frozen=True)
class RunOptions:
    """How long to run."""

    once: bool = False
    """Take what is there now, and end."""
    for_seconds: float | None = None


def run(
    start: Path,
    selection: tuple[str, ...],
    environment: str | None,
    options: RunOptions,
    start_engine: StartEngine,
    stop: Stop,
    on_snapshot: Callable[[Snapshot], None],
    on_console: Callable[[str], None],
    on_event: tuple[Listener, ...] = (),
) -> RunResult:
    """Checks, builds, starts and watches. Nothing is written before everything is found well."""
    crash_points.chosen()  # a wrong name is reported before anything starts
    judged = judge_all(load(start, selection, environment))
    if errors_in(judged.problems):
        return RunResult(problems=judged.problems)
    for pipeline in judged.resolved:
        require_free(lock_folder(judged.project), pipeline.name)
    if unreachable := probed(judged):
        return RunResult(problems=(*judged.problems, *unreachable))
    with resolve.masking(judged.project, os.environ), ExitStack() as cleanup:
        engine = start_engine(judged.project, *needs_of(judged))
        cleanup.callback(engine.close)
        trigger = Trigger("available_now") if options.once else None
        ready, refusals = build_with(engine, judged, trigger)
        if errors_in(refusals):
            return RunResult(problems=(*judged.problems, *refusals))
        cleanup.enter_context(engine.console_to(on_console))
        lock_all(engine, judged.project, ready, cleanup)
        stages = in_stages(judged, ready) if options.once else [ready]
        listeners = Listeners(on_event, (on_snapshot,))
        staged = StagedRun(engine, judged, trigger, cleanup, stop, listeners, options.for_seconds)
        last = staged.run(stages)
    failed = tuple(query.problem for query in last.queries if query.problem)
    problems = (*judged.problems, *failed, *disagreements(last.queries), *staged.problems)
    return RunResult(last.queries, problems, last.elapsed_seconds, started=True)
