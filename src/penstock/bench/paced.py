"""A run with a rate: records come when they are due, and the latency of their answers is measured."""

from __future__ import annotations

import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.bench import answers, measure
from penstock.bench.contenders.contender import Progress
from penstock.bench.generate import Schedule, put_backlog
from penstock.bench.processes import Measured, helper
from penstock.bench.receive import Reception, read_received
from penstock.bench.results import Run
from penstock.bench.topics import topic
from penstock.bench.turn import TICK_SECONDS, Broken, Options, Turn, ended, judged, starter
from penstock.bench.workloads.workload import Workload

_FIRST_ROW_SECONDS = 600.0
_PATIENCE_SECONDS = 120.0
_LEAD_SECONDS = 2.0


@dataclass(frozen=True)
class _Seen:
    """What was seen of a run."""

    schedule: Schedule
    begin: int
    """When the measurement began."""
    first_row: int
    outputs: list[answers.Received]
    lives: list[Measured]
    """The contender's process, and after a crash the next one."""
    progress: Progress | None


def paced(turn: Turn, servers: str, options: Options) -> Run:
    """Some records wait; when they are answered the schedule begins, and after a warm-up the measurement."""
    workload = turn.workload
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        records = held.enter_context(_inlet(workload, servers, folder))
        results = held.enter_context(topic(servers, workload.partitions))
        file, first = folder / "received", time.time_ns() // 1_000
        told = Reception(workload.name, servers, results, workload.backlog, first, str(file), _PATIENCE_SECONDS)
        receiver = held.enter_context(helper((sys.executable, "-m", "penstock.bench.receive", told.to_text())))
        said = _lines(receiver)
        put_backlog(workload, servers, records, first)
        _next_line(said, None)
        start = starter(turn, servers, records, results, folder, held)
        process = start()
        first_row = int(_next_line(said, process))
        _next_line(said, process)
        schedule = _schedule(workload, servers, records, first, options)
        _tell(receiver, schedule)
        command = (sys.executable, "-m", "penstock.bench.generate", schedule.to_text())
        generator = held.enter_context(helper(command))
        begin = schedule.start + int(options.warm_seconds * 1_000_000)
        crash_at = begin + int(options.seconds * 500_000) if workload.crashes else None
        lives = [process, *_await_end(receiver, process, schedule, crash_at, start)]
        if generator.wait():
            raise Broken("the generator failed")
        lives[-1].stop()
        outputs = answers.received(workload, read_received(file))
        progress = turn.contender.progress(folder)
    return _figures(turn, _Seen(schedule, begin, first_row, outputs, lives, progress))


def _figures(turn: Turn, seen: _Seen) -> Run:
    schedule, process = seen.schedule, seen.lives[0]
    wanted = answers.expected(turn.workload, schedule.records(turn.workload))
    times = answers.Waiting(wanted).take(seen.outputs)
    steady = {number: at for number, at in times.items() if schedule.due(number) >= seen.begin}
    sent = sum(schedule.due(number) >= seen.begin for number in schedule.numbers)
    samples = measure.joined([life.samples for life in seen.lives])
    used = measure.cpu_seconds_between(samples, seen.begin, max(steady.values(), default=seen.begin))
    killed_at = process.killed_at
    later = [at for number, at in steady.items() if killed_at and schedule.due(number) >= killed_at]
    return replace(
        judged(turn, wanted, seen.outputs, times),
        latency=measure.latency([(at - schedule.due(number)) / 1_000 for number, at in steady.items()]),
        rows_per_second=measure.rows_per_second(list(steady.values())),
        cpu_seconds_per_million=used * 1_000_000 / sent,
        peak_memory_mb=max(life.peak_memory_bytes for life in seen.lives) / 2**20,
        first_row_seconds=(seen.first_row - process.started_at) / 1_000_000,
        log_milliseconds=seen.progress.log_milliseconds if seen.progress else None,
        pause_milliseconds=measure.longest_gap(list(steady.values())) if turn.workload.boundary else None,
        recovery_seconds=(min(later) - killed_at) / 1_000_000 if killed_at and later else None,
    )


def _schedule(workload: Workload, servers: str, into: str, first: int, options: Options) -> Schedule:
    """From a moment on in which everybody is ready."""
    start = time.time_ns() // 1_000 + int(_LEAD_SECONDS * 1_000_000)
    rate = min(options.rate, workload.most_rate)
    count = round((options.warm_seconds + options.seconds) * rate)
    return Schedule(workload.name, servers, into, first, workload.backlog, start, rate, count)


@contextmanager
def _inlet(workload: Workload, servers: str, folder: Path) -> Iterator[str]:
    """Where records come in: a topic, or a folder."""
    if workload.reads == "topic":
        with topic(servers, workload.partitions) as name:
            yield name
    else:
        (folder / "incoming").mkdir()
        yield str(folder / "incoming")


def _await_end(
    receiver: subprocess.Popen[str],
    process: Measured,
    schedule: Schedule,
    crash_at: int | None,
    start_again: Callable[[], Measured],
) -> list[Measured]:
    """Until the receiver has all answers. At the time of the crash the contender is killed, and started again."""
    again: list[Measured] = []
    deadline = schedule.end / 1_000_000 + 2 * _PATIENCE_SECONDS
    while receiver.poll() is None:
        if crash_at is not None and not again and time.time() * 1_000_000 >= crash_at:
            process.kill()
            again.append(start_again())
        running = again[-1] if again else process
        if running.exit_code is not None:
            raise ended(running)
        if time.time() > deadline:
            raise Broken("the receiver did not end")
        time.sleep(TICK_SECONDS)
    if receiver.returncode:
        raise Broken("the receiver failed")
    return again


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


def _next_line(said: queue.Queue[str], process: Measured | None) -> str:
    deadline = time.monotonic() + _FIRST_ROW_SECONDS
    while time.monotonic() < deadline:
        try:
            return said.get(timeout=TICK_SECONDS)
        except queue.Empty:
            if process is not None and process.exit_code is not None:
                raise ended(process) from None
    raise Broken(f"no row came within {_FIRST_ROW_SECONDS:g} s")
