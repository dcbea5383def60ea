"""One run of one contender: what its two kinds, with a rate and without, have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.bench import answers
from penstock.bench.contenders.contender import Contender
from penstock.bench.job import Job
from penstock.bench.processes import Measured
from penstock.bench.results import Run, Summary
from penstock.bench.workloads.workload import Answer, Workload

TICK_SECONDS = 0.1


@dataclass(frozen=True)
class Options:
    """How long and how hard."""

    rounds: int = 6
    seconds: float = 10.0
    """Measured, in each run of a workload with a rate."""
    warm_seconds: float = 30.0
    """Of each start, not measured."""
    starts: int = 1
    """How often contenders are started anew; rounds are spread over these."""
    rate: float = 1_000.0
    records: int = 500_000
    """How many records wait for a contender that drains them."""


@dataclass(frozen=True)
class Turn:
    """A run that is about to begin."""

    workload: Workload
    contender: Contender
    round: int


@dataclass(frozen=True)
class Watching:
    """Who wants to know what is going on."""

    on_plan: Callable[[int, float], None] = lambda runs, seconds: None
    """Called once, with the number of runs and how many seconds they may take."""
    on_turn: Callable[[Turn], None] = lambda turn: None
    on_run: Callable[[Run], None] = lambda run: None
    on_summary: Callable[[Summary], None] = lambda summary: None


NOBODY = Watching()


class Broken(Exception):
    """A run that cannot be measured, in words for the table."""

    def run(self, turn: Turn) -> Run:
        return Run(turn.workload.name, turn.contender.name, turn.round, str(self))


def contender_starter(
    turn: Turn, servers: str, records: str, results: str, folder: Path, held: ExitStack
) -> Callable[[], Measured]:
    """A way to start the contender in its folder: once, and again where it left off. `held` ends what was started."""
    workload = turn.workload
    job = Job(workload.name, servers, records, results, str(folder), workload.partitions, workload.drains)
    workload.place_files(folder)
    launch = turn.contender.launch(workload, job)

    def start() -> Measured:
        every_seconds = 0.2 if workload.drains else 1.0  # a sample takes a moment that a latency could notice
        process = Measured(launch.command, _environ() | dict(launch.environ), folder, every_seconds)
        held.callback(process.stop)
        return process

    return start


def _environ() -> dict[str, str]:
    """Ours. A contender runs in a folder of its own, where a path of `PYTHONPATH` that is not whole leads nowhere."""
    paths = [str(Path(one).absolute()) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    return {**os.environ, **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})}


def judged(turn: Turn, wanted: Sequence[tuple[int, Answer]], outputs: Sequence[answers.Received], answered: int) -> Run:
    """Whether the run counts: every answer came, and the result is the model's."""
    run = Run(turn.workload.name, turn.contender.name, turn.round, answers=answered)
    right = answers.digest(outcome for _, outcome in wanted)
    found = answers.digest(output.outcome for output in outputs)
    problem = None
    if answered < len(wanted):
        problem = f"{len(wanted) - answered:,} of {len(wanted):,} answers did not come"
    elif found != right:
        problem = f"its result {found} is not the model's {right}"
    return replace(run, digest=found, problem=problem)


def ended(process: Measured) -> Broken:
    """It should have gone on, or ended well."""
    return Broken(f"its process ended with code {process.exit_code}; it said:\n{process.said()}")
