"""Starts a pipeline from Python and gives a handle on it."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.engine import resolve, session
from penstock.pipeline import project as projects
from penstock.pipeline.load import Loaded, find_root
from penstock.pipeline.model import Pipeline
from penstock.prepare.judging import judge_all
from penstock.prepare.needs import needs_of
from penstock.prepare.probing import probed
from penstock.prepare.ready import build_with
from penstock.problems import UserError, errors_in
from penstock.query.triggers import Trigger
from penstock.supervise.loop import Stop, watch
from penstock.supervise.running import RunningQuery
from penstock.supervise.starting import start_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_TICK_SECONDS = 0.05


class Handle:
    """A running pipeline. Use it as a context manager, or call `stop()`: it then also gives back its lock and Spark."""

    def __init__(self, queries: list[RunningQuery], sinks: dict[str, str], cleanup: ExitStack) -> None:
        self._sinks, self._cleanup = sinks, cleanup
        self.queries: dict[str, RunningQuery] = {query.name: query for query in queries}

    @property
    def is_active(self) -> bool:
        return any(query.is_active for query in self.queries.values())

    def table(self, sink: str) -> DataFrame:
        """The rows that the memory sink of that name holds now."""
        return self.queries[self._sinks[sink]].table()

    def await_termination(self, timeout_seconds: float | None = None) -> bool:
        """Waits for all queries, or until the time is over; tells whether all have ended. UserError if one failed."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            active = self.is_active
            failed = [query.exception for query in self.queries.values() if not query.is_active]
            if problems := [problem for problem in failed if problem]:
                raise UserError(problems)
            if not active or (deadline is not None and time.monotonic() >= deadline):
                return not active
            time.sleep(_TICK_SECONDS)

    def stop(self) -> None:
        """Lets the batches under way commit, then ends every query."""
        if self.is_active:
            stop = Stop()
            stop.ask()
            watch(list(self.queries.values()), stop, lambda snapshot: None)
        self._cleanup.close()

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(pipeline: Pipeline, folder: Path, environment: str | None, trigger: Trigger | None) -> Handle:
    """Raises UserError before anything is written."""
    root = find_root(folder)
    project = projects.load(root, environment) if root else projects.bare(folder.resolve())
    judged = judge_all(Loaded(project, (pipeline,)))
    if errors_in(judged.problems):
        raise UserError(judged.problems)
    if unreachable := probed(judged):
        raise UserError(unreachable)
    with resolve.masking(project, os.environ), ExitStack() as cleanup:
        connectors, settings = needs_of(judged)
        engine = cleanup.enter_context(
            session.shared.use(lambda: session.start(project.name, settings, project.local_folder, connectors))
        )
        ready, refusals = build_with(engine, judged, trigger)
        if errors_in(refusals):
            raise UserError(refusals)
        queries = start_all(engine, project, ready, judged.disks, trigger, cleanup)
        sinks = {sink.name: query.name for query in pipeline.queries for sink in query.sinks}
        return Handle(queries, sinks, cleanup.pop_all())
