"""Runs contenders one after the other, round after round, and measures each in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from penstock.bench.contenders.contender import Contender
from penstock.bench.drained import Reservoir, drained
from penstock.bench.paced import paced
from penstock.bench.results import Run
from penstock.bench.turn import Broken, Options, Turn
from penstock.bench.workloads.workload import Workload


def turns(workload: Workload, contenders: Sequence[Contender], rounds: int) -> Iterator[Turn]:
    """Interleaved; each round begins with another contender, so that none always comes first or last."""
    for number in range(rounds):
        shift = number % len(contenders) if contenders else 0
        for contender in (*contenders[shift:], *contenders[:shift]):
            yield Turn(workload, contender, number + 1)


def run_workload(
    workload: Workload,
    contenders: Sequence[Contender],
    servers: str,
    options: Options,
    on_turn: Callable[[Turn], None] = lambda turn: None,
    on_run: Callable[[Run], None] = lambda run: None,
) -> list[Run]:
    """Every contender in every round. A run that fails is told as one, and the others go on."""
    runs = []
    with ExitStack() as held:
        reservoir = Reservoir(workload, servers, options.records, held) if workload.drains else None
        for turn in turns(workload, contenders, options.rounds):
            on_turn(turn)
            try:
                run = drained(turn, servers, reservoir) if reservoir else paced(turn, servers, options)
            except Broken as broken:
                run = Run(workload.name, turn.contender.name, turn.round, str(broken))
            runs.append(run)
            on_run(run)
    return runs
