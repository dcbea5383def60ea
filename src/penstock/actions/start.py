"""Starts a pipeline from Python and gives a handle on it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.engine import resolve, shared_spark
from penstock.engine.session import Engine
from penstock.pipeline import project as projects
from penstock.pipeline.load import Loaded, find_root
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project
from penstock.prepare.judging import judge_all
from penstock.prepare.needs import StartEngine, needs_of
from penstock.prepare.probing import probed
from penstock.prepare.ready import build_with, made_for_readers
from penstock.problems import UserError, errors_in
from penstock.query.triggers import Trigger
from penstock.screens.views import View
from penstock.supervise.query_view import Snapshot
from penstock.supervise.running import RunningQuery
from penstock.supervise.starting import lock_all, start_all
from penstock.supervise.stopping import Stop
from penstock.supervise.supervisor import Listeners, Supervisor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_TICK_SECONDS = 0.05


class Handle:
    """A running pipeline, supervised in a thread. Use it as a context manager, or call `stop()`.

    `stop()` also gives back the lock and Spark.
    """

    def __init__(
        self,
        queries: list[RunningQuery],
        sinks: dict[str, str],
        cleanup: ExitStack,
        listeners: Listeners,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._sinks, self._cleanup, self._stop, self._on_end = sinks, cleanup, Stop(), on_end
        self._supervisor = Supervisor(queries, self._stop, listeners)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._supervise, name="penstock-supervisor", daemon=True)
        self.queries: dict[str, RunningQuery] = {query.name: query for query in queries}
        self._thread.start()

    def _supervise(self) -> None:
        try:
            self._supervisor.run()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            self._on_end()

    @property
    def is_active(self) -> bool:
        """Does a query run, or wait to be restarted?"""
        return self._thread.is_alive()

    @property
    def snapshot(self) -> Snapshot:
        """All queries now: their states, counts and problems."""
        return self._supervisor.snapshot

    def table(self, sink: str) -> DataFrame:
        """The rows that the memory sink of that name holds now."""
        return self.queries[self._sinks[sink]].table()

    def await_termination(self, timeout_seconds: float | None = None) -> bool:
        """Waits for all queries, or until the time is over. Returns whether all have ended. UserError if one failed."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            active = self.is_active
            if self._error is not None:
                raise self._error
            if problems := [view.problem for view in self.snapshot.queries if view.problem]:
                raise UserError(problems)
            if not active or (deadline is not None and time.monotonic() >= deadline):
                return not active
            self._thread.join(_TICK_SECONDS)

    async def wait(self, timeout_seconds: float | None = None) -> bool:
        """As `await_termination`, while other coroutines run. `await handle` is the same without a limit."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while not self.await_termination(0):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_TICK_SECONDS)
        return True

    def __await__(self) -> Generator[Any, None, bool]:
        return self.wait().__await__()

    def stop(self, query: str | None = None) -> None:
        """Lets the batches under way commit, then ends every query, or the one of that name.

        Returns when they have ended. KeyError if there is no such query.
        """
        if query is not None:
            self._stop_one(self.queries[query].name)
            return
        self._stop.ask()
        self._thread.join()
        self._cleanup.close()

    def _stop_one(self, name: str) -> None:
        self._supervisor.stop_query(name)
        while self.is_active and not all(view.has_ended for view in self.snapshot.queries if view.name == name):
            self._thread.join(_TICK_SECONDS)

    def __repr__(self) -> str:
        from penstock.screens.reprs import run_text

        return run_text(self.snapshot, time.time())

    def _repr_html_(self) -> str:
        from penstock.screens.html import run_html

        return run_html(self.snapshot, time.time())

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def loaded_in(pipeline: Pipeline, folder: Path, environment: str | None) -> Loaded:
    """A pipeline of Python in the project of a folder, or in a project without a `penstock.yaml`. Raises UserError."""
    root = find_root(folder)
    project = projects.load(root, environment) if root else projects.bare(folder.resolve())
    return Loaded(project, (pipeline,))


@contextmanager
def looking() -> Iterator[StartEngine]:
    """Spark for a call that only looks. It stays for the next call, and until the last handle is closed."""
    with ExitStack() as cleanup:

        def borrow(project: Project, connectors: tuple[str, ...], settings: dict[str, str]) -> Engine:
            needs = shared_spark.Needs(project.name, project.local_folder, settings, frozenset(connectors))
            engine = cleanup.enter_context(shared_spark.shared.use(needs, keep=True))
            return replace(engine, jvm=None)  # which the call cannot end

        yield borrow


def start(
    loaded: Loaded,
    trigger: Trigger | None,
    listeners: Listeners = Listeners(),  # noqa: B008 - frozen
    view: View = View(),  # noqa: B008 - shows nothing, and keeps nothing
) -> Handle:
    """Raises UserError before anything is written."""
    judged = judge_all(loaded)
    project, (pipeline,) = loaded.project, loaded.pipelines
    if errors_in(judged.problems):
        raise UserError(judged.problems)
    if unreachable := probed(judged):
        raise UserError(unreachable)
    with resolve.masking(project, os.environ), ExitStack() as cleanup:
        cleanup.enter_context(view)
        view.preparing()
        connectors, settings = needs_of(judged)
        needs = shared_spark.Needs(project.name, project.local_folder, settings, frozenset(connectors))
        engine = cleanup.enter_context(shared_spark.shared.use(needs))
        ready, refusals = build_with(engine, judged, trigger)
        if errors_in(refusals):
            raise UserError(refusals)
        lock_all(engine, project, ready, cleanup)
        ready, refusals = made_for_readers(engine, judged, ready, trigger)
        if errors_in(refusals):
            raise UserError(refusals)
        queries = start_all(engine, project, ready, judged.disks, trigger, cleanup, is_locked=True)
        sinks = {sink.name: query.name for query in pipeline.queries for sink in query.sinks}
        heard = Listeners((*listeners.on_event, view.event), (*listeners.on_snapshot, view.snapshot))
        return Handle(queries, sinks, cleanup.pop_all(), heard, lambda: view.__exit__(None, None, None))
