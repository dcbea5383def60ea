"""Runs with a rate: contenders are up together and take laps in turn, each alone, for the others are held.

A machine may be twice as slow in one minute as in the next. Laps that follow each other within seconds meet the same
machine; whole runs that follow each other do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from penstock.bench.entrant import Entrant, Lap
from penstock.bench.results import Run
from penstock.bench.turn import NOBODY, Broken, Options, Turn, Watching


def paced(turns: Sequence[Turn], servers: str, options: Options, watching: Watching = NOBODY) -> list[Run]:
    """Starts and warms the contender of each turn once, then runs the turns. One that has failed gets no more."""
    runs: list[Run] = []
    entrants: dict[str, Entrant] = {}

    def told(run: Run) -> None:
        runs.append(run)
        watching.on_run(run)

    with ExitStack() as held:
        for turn in _first_of_each(turns):
            watching.on_turn(turn)
            with _told_when_broken(turn, told):
                entrants[turn.contender.name] = _started(turn, servers, options, held)
        for turn in turns:
            name = turn.contender.name
            if all(run.problem is None for run in runs if run.contender == name):
                watching.on_turn(turn)
                with _told_when_broken(turn, told):
                    told(entrants[name].run(_lap(turn, options, options.seconds), turn.round))
        logs = {name: log.log_milliseconds for name, entrant in entrants.items() if (log := entrant.end())}
    return [replace(run, log_milliseconds=logs.get(run.contender)) for run in runs]


def _first_of_each(turns: Sequence[Turn]) -> list[Turn]:
    first: dict[str, Turn] = {}
    for turn in turns:
        first.setdefault(turn.contender.name, turn)
    return list(first.values())


@contextmanager
def _told_when_broken(turn: Turn, told: Callable[[Run], None]) -> Iterator[None]:
    try:
        yield
    except Broken as broken:
        told(broken.run(turn))


def _started(turn: Turn, servers: str, options: Options, held: ExitStack) -> Entrant:
    """Up and warm. What it needs is ended with `held`, or at once when it does not come that far."""
    with ExitStack() as own:
        entrant = Entrant(turn, servers, own)
        if options.warm_seconds:
            entrant.run(replace(_lap(turn, options, options.warm_seconds), crashes=False), turn.round)
        held.push(own.pop_all())
    return entrant


def _lap(turn: Turn, options: Options, seconds: float) -> Lap:
    return Lap(seconds, min(options.rate, turn.workload.most_rate), turn.workload.crashes)
