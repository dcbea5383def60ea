"""Runs contenders in turn, round after round, and measures each in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.bench.contenders.contender import Contender
from penstock.bench.drained import drained
from penstock.bench.paced import paced
from penstock.bench.results import Run
from penstock.bench.turn import NOBODY, Options, Turn, Watching
from penstock.bench.workloads.workload import Workload


def turns(workload: Workload, contenders: Sequence[Contender], rounds: int) -> Iterator[Turn]:
    """Interleaved; each round begins with another contender, so that none always comes first or last."""
    for number in range(rounds):
        shift = number % len(contenders) if contenders else 0
        for contender in (*contenders[shift:], *contenders[:shift]):
            yield Turn(workload, contender, number + 1)


def starts_anew(workload: Workload) -> bool:
    """Whether each round starts its contenders anew: what a crash or the end of a batch takes is nobody else's time."""
    return workload.drains or workload.crashes or workload.boundary is not None


def starts(turns: Sequence[Turn], rounds: int, times: int) -> list[list[Turn]]:
    """The turns of each start of the contenders: as many rounds each as can be."""
    number = {one: (one - 1) * min(times, rounds) // rounds for one in range(1, rounds + 1)}
    return [[turn for turn in turns if number[turn.round] == start] for start in sorted(set(number.values()))]


def run_workload(
    workload: Workload,
    contenders: Sequence[Contender],
    servers: str,
    options: Options,
    watching: Watching = NOBODY,
) -> list[Run]:
    """Every contender in every round. A run that fails is told as one, and the others go on."""
    in_order = list(turns(workload, contenders, options.rounds))
    if in_order and workload.drains:
        return drained(in_order, servers, options, watching)
    alone = starts_anew(workload)
    together = [[turn] for turn in in_order] if alone else starts(in_order, options.rounds, options.starts)
    return [run for some in together for run in paced(some, servers, options, watching)]
