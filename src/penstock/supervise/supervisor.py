"""Runs queries until they end: restarts what may pass, stops what will not, and tells every listener what happens."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.problems import Problem
from penstock.supervise.events import Event
from penstock.supervise.query_view import Snapshot
from penstock.supervise.running import RunningQuery
from penstock.supervise.stopping import Stop
from penstock.supervise.watch import Watch

Listener = Callable[[Event], None]
_TICK_SECONDS = 0.2
_LEAST_TICK_SECONDS = 0.04
"""At the start: a run that has little to do is seen to end within a quarter of its time."""
_STOPPING_TICK_SECONDS = 0.02


@dataclass(frozen=True)
class Listeners:
    """Who hears of a run. One that raises is reported at the end, and never hurts the run."""

    on_event: tuple[Listener, ...] = ()
    on_snapshot: tuple[Callable[[Snapshot], None], ...] = ()


class Supervisor:
    """One for `penstock run`, `run --once` and `Pipeline.start()`.

    A query that gives up ends alone or with its pipeline, as its policy says. Other pipelines run on.
    """

    def __init__(
        self,
        queries: Sequence[RunningQuery],
        stop: Stop,
        listeners: Listeners = Listeners(),  # noqa: B008 - frozen
        for_seconds: float | None = None,
    ) -> None:
        self._stop, self._listeners, self._for_seconds = stop, listeners, for_seconds
        self._watches = [Watch(query, query.policy, self._emit, random.random) for query in queries]
        self._began = time.monotonic()
        self._raised: dict[object, Problem] = {}
        self._stopped_alone: set[str] = set()

    def stop_query(self, name: str) -> None:
        """Lets the batch under way of one query commit, then ends it. The others run on."""
        self._stopped_alone.add(name)

    @property
    def snapshot(self) -> Snapshot:
        """All queries now."""
        views = tuple(watch.view for watch in self._watches)
        return Snapshot(time.monotonic() - self._began, views, self._stop.asked)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong beside the queries: listeners that raised."""
        return tuple(self._raised.values())

    def run(self) -> Snapshot:
        """Returns when every query has ended."""
        for watch in self._watches:
            watch.begin()
        while True:
            is_over = self._for_seconds is not None and time.monotonic() - self._began >= self._for_seconds
            if is_over and not self._stop.asked:
                self._stop.ask()
            self._stop_where_asked()
            for watch in self._watches:
                watch.look()
            snapshot = self.snapshot
            for show in self._listeners.on_snapshot:
                self._call(show, snapshot)
            if all(watch.has_ended for watch in self._watches):
                return snapshot
            time.sleep(self._tick_seconds)

    @property
    def _tick_seconds(self) -> float:
        if self._stop.asked:
            return _STOPPING_TICK_SECONDS
        lasted = time.monotonic() - self._began
        return min(_TICK_SECONDS, max(_LEAST_TICK_SECONDS, lasted / 4))

    def _stop_where_asked(self) -> None:
        pipelines = {watch.view.pipeline for watch in self._watches if watch.stops_pipeline}
        for watch in self._watches:
            alone = watch.view.name in self._stopped_alone
            if alone or self._stop.asked or watch.view.pipeline in pipelines:
                watch.stop(at_once=self._stop.at_once)

    def _emit(self, event: Event) -> None:
        for listener in self._listeners.on_event:
            self._call(listener, event)

    def _call(self, listener: Callable[[Any], None], told: Event | Snapshot) -> None:
        try:
            listener(told)
        except Exception as error:  # noqa: BLE001 - whatever a listener raises, the run goes on
            message = f"a listener of the run raised {type(error).__name__}: {error}"
            self._raised.setdefault(
                listener,
                Problem(
                    "RUN004", message, "correct the listener at the line that raised, or remove it", severity="warning"
                ),
            )
