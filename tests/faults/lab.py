"""A pipeline that runs while something breaks: what it reads and writes, and what became of every id."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.actions.run import RunOptions, run
from penstock.actions.start import start as start_from_python
from penstock.pipeline.load import load
from penstock.prepare.needs import StartEngine
from penstock.problems import Problem, UserError, errors_in
from penstock.supervise import events
from penstock.supervise.events import Event
from penstock.supervise.stopping import Stop
from penstock.supervise.supervisor import Listeners
from tests.conftest import place

Way = Literal["run", "once", "start"]
"""`penstock run`, `penstock run --once`, and `Pipeline.start()`."""
PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Seen:
    """What became of a fault."""

    decided: str
    seconds: float | None
    """Until rows flowed again after the cause was gone."""
    lost: int
    repeated: int
    codes: tuple[str, ...] = ()


@dataclass
class Lab:
    """One project with one fault. `feed` gives ids to the source, `ids` reads those of the sink."""

    root: Path
    way: Way
    start_engine: StartEngine
    cleanup: ExitStack
    services: Any
    """Fixtures by name: `kafka`, `postgres`."""
    feed: Callable[[range], None] = lambda ids: None
    ids: Callable[[], list[int]] = list
    events: list[Event] = field(default_factory=list)
    _stop: Stop = field(default_factory=Stop)
    _running: Future[tuple[Problem, ...]] | None = None

    def write(self, pipeline: str, settings: str = "name: lab\n", name: str = "p") -> None:
        place(self.root / "penstock.yaml", settings)
        place(self.root / f"pipelines/{name}.yaml", pipeline)

    def begin(self) -> None:
        """Starts the pipeline. Returns at once."""
        pool = self.cleanup.enter_context(ThreadPoolExecutor(1))
        self._stop = Stop()
        self.cleanup.callback(self._stop.ask)
        self._running = pool.submit(self._in_python if self.way == "start" else self._in_terminal)

    def _in_terminal(self) -> tuple[Problem, ...]:
        options = RunOptions(once=self.way == "once")
        nothing: Callable[[Any], None] = lambda seen: None  # noqa: E731
        listeners = (self.events.append,)
        return run(self.root, (), None, options, self.start_engine, self._stop, nothing, nothing, listeners).problems

    def _in_python(self) -> tuple[Problem, ...]:
        (pipeline,) = load(self.root, (), None).pipelines
        handle = start_from_python(pipeline, self.root, None, None, Listeners((self.events.append,)))
        with handle:
            while handle.is_active and not self._stop.asked:
                time.sleep(0.05)
        return tuple(view.problem for view in handle.snapshot.queries if view.problem)

    @property
    def has_ended(self) -> bool:
        return self._running is not None and self._running.done()

    def end(self) -> tuple[Problem, ...]:
        """Stops the pipeline, or waits for its end. What was wrong."""
        assert self._running is not None
        if self.way != "once":
            self._stop.ask()
        return self.ended()

    def ended(self) -> tuple[Problem, ...]:
        """Waits until the pipeline has ended by itself."""
        assert self._running is not None
        try:
            return errors_in(self._running.result(PATIENCE_SECONDS))
        except UserError as error:
            return errors_in(error.problems)

    def once(self) -> tuple[Problem, ...]:
        """`penstock run --once` over what is left."""
        nothing: Callable[[Any], None] = lambda seen: None  # noqa: E731
        try:
            return errors_in(
                run(self.root, (), None, RunOptions(once=True), self.start_engine, Stop(), nothing, nothing).problems
            )
        except UserError as error:
            return errors_in(error.problems)

    def wait_until(self, what: Callable[[], Any], why: str) -> float:
        """How long it took. Ends early when the run has ended."""
        began = time.monotonic()
        while not what():
            assert not self.has_ended or self.way == "once", f"{why}: the run has ended: {self.ended()}"
            assert time.monotonic() - began < PATIENCE_SECONDS, f"{why}: {self.events[-3:]}"
            time.sleep(0.1)
        return time.monotonic() - began

    def wait_for_ids(self, count: int) -> float:
        return self.wait_until(lambda: len(set(self.ids())) >= count, f"{count} ids did not come")

    def has(self, kind: type[Event], **given: Any) -> bool:
        """Has such an event happened?"""
        return any(
            isinstance(one, kind) and all(getattr(one, name) == value for name, value in given.items())
            for one in tuple(self.events)
        )

    @property
    def decided(self) -> str:
        """What the supervisor has done, in words."""
        seen = tuple(self.events)
        away = dict.fromkeys(event.node for event in seen if isinstance(event, events.Away))
        restarts = sum(isinstance(event, events.Restarting) for event in seen)
        failed = [event.problem for event in seen if isinstance(event, events.Stopped) and event.problem]
        words = [f"reported that `{node}` was away" for node in away]
        words += [f"restarted {'once' if restarts == 1 else f'{restarts} times'}"] if restarts else []
        words += [f"stopped with {problem.code}" for problem in failed]
        return ", ".join(words) or "went on"

    def seen(self, expected: range, seconds: float | None, problems: tuple[Problem, ...] = ()) -> Seen:
        """Compares the ids of the sink with those that were fed."""
        counts = Counter(self.ids())
        lost = len(set(expected) - set(counts))
        repeated = sum(count - 1 for count in counts.values())
        assert set(counts) <= set(expected), "ids that nobody fed"
        return Seen(self.decided, seconds, lost, repeated, tuple(problem.code for problem in problems))


def lines(ids: range) -> str:
    return "".join(f"{json.dumps({'id': number})}\n" for number in ids)
