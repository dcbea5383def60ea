"""Runs contenders one after the other, round after round, and measures each in the same way."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.bench import answers, measure
from penstock.bench.contenders.contender import Contender
from penstock.bench.generate import Schedule, send, waiting_records
from penstock.bench.job import Job
from penstock.bench.processes import Measured, helper
from penstock.bench.receive import Reception, read_received, read_topic
from penstock.bench.results import Run
from penstock.bench.topics import topic
from penstock.bench.workloads.workload import Outcome, Workload

_FIRST_ROW_SECONDS = 240.0
_DRAIN_SECONDS = 600.0
_PATIENCE_SECONDS = 120.0
_LEAD_SECONDS = 2.0
_WARM_SHARE = 0.25
_TICK_SECONDS = 0.1


@dataclass(frozen=True)
class Options:
    """How long and how hard."""

    rounds: int = 3
    seconds: float = 20.0
    """Measured, in each run of a workload with a rate."""
    warm_seconds: float = 10.0
    """Before that, not measured."""
    rate: float = 1_000.0
    records: int = 500_000
    """How many records wait for a contender that drains them."""


@dataclass(frozen=True)
class Turn:
    """One run that is about to begin."""

    workload: Workload
    contender: Contender
    round: int


class Broken(Exception):
    """A run that cannot be measured, in words for the table."""


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
        waiting = _Waiting(workload, servers, options, held) if workload.drains else None
        for turn in turns(workload, contenders, options.rounds):
            on_turn(turn)
            try:
                run = _drained(turn, servers, waiting) if waiting else _paced(turn, servers, options)
            except Broken as broken:
                run = Run(workload.name, turn.contender.name, turn.round, str(broken))
            runs.append(run)
            on_run(run)
    return runs


def _paced(turn: Turn, servers: str, options: Options) -> Run:
    """Records come at a rate; their latency is measured after a warm-up."""
    workload = turn.workload
    with ExitStack() as held:
        records, results = (held.enter_context(topic(servers, workload.partitions)) for _ in range(2))
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        file = folder / "received"
        told = Reception(servers, results, str(file), _PATIENCE_SECONDS)
        receiver = held.enter_context(helper((sys.executable, "-m", "penstock.bench.receive", told.to_text())))
        said = _lines(receiver)
        _next_line(said, _FIRST_ROW_SECONDS, None)
        first = time.time_ns() // 1_000
        send(servers, records, [workload.record(0, first)])
        process = _started(turn, servers, records, results, folder, 1.0, held)
        first_row = int(_next_line(said, _FIRST_ROW_SECONDS, process))
        start = time.time_ns() // 1_000 + int(_LEAD_SECONDS * 1_000_000)
        count = round((options.warm_seconds + options.seconds) * options.rate)
        schedule = Schedule(workload.name, servers, records, first, start, options.rate, count)
        _tell(receiver, schedule)
        command = (sys.executable, "-m", "penstock.bench.generate", schedule.to_text())
        generator = held.enter_context(helper(command))
        _await_end(receiver, process, schedule)
        if generator.wait():
            raise Broken("the generator failed")
        process.stop()
        outputs = answers.received(workload, read_received(file))
    wanted = answers.expected(workload, schedule.records(workload))
    times = answers.Waiting(wanted).take(outputs)
    begin = start + int(options.warm_seconds * 1_000_000)
    steady = {number: at for number, at in times.items() if number and schedule.due(number) >= begin}
    run = _judged(turn, wanted, outputs, times)
    used = measure.cpu_seconds_between(process.samples, begin, max(steady.values(), default=begin))
    return replace(
        run,
        latency=measure.latency([(at - schedule.due(number)) / 1_000 for number, at in steady.items()]),
        rows_per_second=measure.rows_per_second(list(steady.values())),
        cpu_seconds_per_million=used * 1_000_000 / (options.seconds * options.rate),
        peak_memory_mb=process.peak_memory_bytes / 2**20,
        first_row_seconds=(first_row - process.started_at) / 1_000_000,
    )


class _Waiting:
    """The records of a workload that drains: in a topic, once for all its runs."""

    def __init__(self, workload: Workload, servers: str, options: Options, held: ExitStack) -> None:
        records = list(waiting_records(workload, options.records))
        self.count = len(records)
        self.topic = held.enter_context(topic(servers, workload.partitions))
        self.wanted = answers.expected(workload, records)
        send(servers, self.topic, records)


def _drained(turn: Turn, servers: str, waiting: _Waiting) -> Run:
    """All records are there; how fast their answers come is read from the broker's own clock afterwards."""
    workload = turn.workload
    with ExitStack() as held:
        results = held.enter_context(topic(servers, workload.partitions))
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        process = _started(turn, servers, waiting.topic, results, folder, 0.2, held)
        deadline = time.monotonic() + _DRAIN_SECONDS
        while process.exit_code is None:
            if time.monotonic() > deadline:
                raise Broken(f"it had not taken everything after {_DRAIN_SECONDS:g} s")
            time.sleep(_TICK_SECONDS)
        if process.exit_code:
            raise _ended(process)
        process.stop()
        outputs = answers.received(workload, read_topic(servers, results))
    times = answers.Waiting(waiting.wanted).take(outputs)
    run = _judged(turn, waiting.wanted, outputs, times)
    steady = measure.steady_part(list(times.values()), _WARM_SHARE)
    if not steady:
        return run
    used = measure.cpu_seconds_between(process.samples, steady[0], steady[-1])
    return replace(
        run,
        rows_per_second=measure.rows_per_second(steady),
        cpu_seconds_per_million=used * 1_000_000 / (waiting.count * (1 - _WARM_SHARE)),
        peak_memory_mb=process.peak_memory_bytes / 2**20,
        first_row_seconds=(min(times.values()) - process.started_at) / 1_000_000,
    )


def _judged(
    turn: Turn,
    wanted: Sequence[tuple[int, Outcome]],
    outputs: Sequence[answers.Received],
    times: dict[int, int],
) -> Run:
    """Whether the run counts: every answer came, and the result is the model's."""
    run = Run(turn.workload.name, turn.contender.name, turn.round, answers=len(times))
    right = answers.digest(outcome for _, outcome in wanted)
    found = answers.digest(output.outcome for output in outputs)
    problem = None
    if len(times) < len(wanted):
        problem = f"{len(wanted) - len(times):,} of {len(wanted):,} answers did not come"
    elif found != right:
        problem = f"its result {found} is not the model's {right}"
    return replace(run, digest=found, problem=problem)


def _started(
    turn: Turn, servers: str, records: str, results: str, folder: Path, every_seconds: float, held: ExitStack
) -> Measured:
    workload = turn.workload
    job = Job(workload.name, servers, records, results, str(folder), workload.partitions, workload.drains)
    workload.place_files(folder)
    launch = turn.contender.launch(workload, job)
    process = Measured(launch.command, os.environ | dict(launch.environ), folder, every_seconds)
    held.callback(process.stop)
    return process


def _await_end(receiver: subprocess.Popen[str], process: Measured, schedule: Schedule) -> None:
    deadline = schedule.end / 1_000_000 + 2 * _PATIENCE_SECONDS
    while receiver.poll() is None:
        if process.exit_code is not None:
            raise _ended(process)
        if time.time() > deadline:
            raise Broken("the receiver did not end")
        time.sleep(_TICK_SECONDS)
    if receiver.returncode:
        raise Broken("the receiver failed")


def _tell(receiver: subprocess.Popen[str], schedule: Schedule) -> None:
    if receiver.stdin is not None:
        receiver.stdin.write(schedule.to_text() + "\n")
        receiver.stdin.flush()


def _lines(process: subprocess.Popen[str]) -> queue.Queue[str]:
    """What it says, line by line, as it comes."""
    said: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            said.put(line)

    threading.Thread(target=read, daemon=True, name="receiver").start()
    return said


def _next_line(said: queue.Queue[str], within_seconds: float, process: Measured | None) -> str:
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        try:
            return said.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            if process is not None and process.exit_code is not None:
                raise _ended(process) from None
    raise Broken(f"no row came within {within_seconds:g} s")


def _ended(process: Measured) -> Broken:
    return Broken(f"its process ended with code {process.exit_code}; it said: {process.said()}")
