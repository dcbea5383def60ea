"""A contender that is up: it is fed for one lap after the other, and held in between."""

from __future__ import annotations

import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
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
from penstock.bench.turn import TICK_SECONDS, Broken, Turn, contender_starter, ended, judged
from penstock.bench.workloads.workload import Answer, Workload

_FIRST_ROW_SECONDS = 600.0
_PATIENCE_SECONDS = 120.0
_LEAD_SECONDS = 1.5
_MODELLED_A_SECOND = 50_000
"""So many records a receiver looks at before they are sent, to know their answers."""
_REST_SECONDS = 1.0
"""After the last answer, for the batch that gave it to be written down: Spark would count the hold as part of that."""
SETTLE_SECONDS = 2.0
"""At the beginning of a lap; records that are due then do not count, for the contender was held."""
BESIDE_SECONDS = _LEAD_SECONDS + SETTLE_SECONDS + _REST_SECONDS
"""Of a lap, that do not count."""


@dataclass(frozen=True)
class Lap:
    """What a contender gets at one time: some seconds that count, and in some workloads a crash in their middle."""

    seconds: float
    rate: float
    crashes: bool = False


class Entrant:
    """A contender's process, what it is fed from, and the receiver of its answers."""

    def __init__(self, turn: Turn, servers: str, held: ExitStack) -> None:
        """Starts it, and returns when it has answered what waited. `held` ends everything. Raises Broken."""
        self._turn, self._workload, self._servers = turn, turn.workload, servers
        workload = turn.workload
        self._lives: list[Measured] = []
        self._folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        self._records = held.enter_context(_inlet(workload, servers, self._folder))
        results = held.enter_context(topic(servers, workload.partitions))
        first = time.time_ns() // 1_000
        told = Reception(workload.name, servers, results, workload.backlog, first, str(self._folder), _PATIENCE_SECONDS)
        command = (sys.executable, "-m", "penstock.bench.receive", told.to_text())
        self._receiver = held.enter_context(helper(command))
        self._said = _lines(self._receiver)
        put_backlog(workload, servers, self._records, first)
        self._await_line(_FIRST_ROW_SECONDS)
        self._start = contender_starter(turn, servers, self._records, results, self._folder, held)
        self._lives.append(self._start())
        self._first_row = int(self._await_line(_FIRST_ROW_SECONDS))
        self._step = workload.model()
        waiting = [workload.record(number, first) for number in range(workload.backlog)]
        self._sent = workload.backlog
        self._wanted: list[tuple[int, Answer]] = answers.expected(workload, waiting, self._step)
        self._waiting = answers.Waiting(self._wanted)
        self._outputs: list[answers.Received] = []
        self._first = first
        self._take_outputs(_FIRST_ROW_SECONDS)
        self._process.hold()

    @property
    def _process(self) -> Measured:
        """The one that runs: after a crash, the next one."""
        return self._lives[-1]

    def run(self, lap: Lap, number: int) -> Run:
        """Records come when they are due; when all are answered it is held again. Raises Broken."""
        self._process.go_on()
        count = round((SETTLE_SECONDS + lap.seconds) * lap.rate)
        start = time.time_ns() // 1_000 + int((_LEAD_SECONDS + count / _MODELLED_A_SECOND) * 1_000_000)
        schedule = Schedule(
            self._workload.name, self._servers, self._records, self._first, self._sent, start, lap.rate, count
        )
        self._tell(schedule)
        try:
            with helper((sys.executable, "-m", "penstock.bench.generate", schedule.to_text())) as generator:
                if lap.crashes:
                    self._crash_at(start + int((SETTLE_SECONDS + lap.seconds / 2) * 1_000_000))
                times = self._answers_to(schedule)
                if generator.wait():
                    raise Broken("the generator failed")
            time.sleep(_REST_SECONDS)
        finally:
            self._process.hold()
        return self._figures(schedule, times, number)

    def end(self) -> Progress | None:
        """Ends the contender; what it left about its micro-batches."""
        self._process.stop()
        return self._turn.contender.progress(self._folder)

    def _answers_to(self, schedule: Schedule) -> dict[int, int]:
        """When each record of the schedule was answered, by its number."""
        wanted = answers.expected(self._workload, schedule.later_records(self._workload), self._step)
        numbered = [(self._sent + number, outcome) for number, outcome in wanted]
        self._sent += schedule.count
        self._wanted += numbered
        self._waiting.expect(numbered)
        return self._take_outputs(schedule.end / 1_000_000 - time.time() + 2 * _PATIENCE_SECONDS)

    def _take_outputs(self, seconds: float) -> dict[int, int]:
        file = Path(self._await_line(seconds).strip())
        outputs = answers.received(self._workload, read_received(file))
        file.unlink()
        self._outputs += outputs
        return self._waiting.take(outputs)

    def _crash_at(self, at: int) -> None:
        time.sleep(max(0.0, at / 1_000_000 - time.time()))
        self._process.kill()
        self._lives.append(self._start())

    def _figures(self, schedule: Schedule, times: dict[int, int], number: int) -> Run:
        begin = schedule.start + int(SETTLE_SECONDS * 1_000_000)
        steady = {one: at for one, at in times.items() if schedule.due(one) >= begin}
        sent = sum(schedule.due(one) >= begin for one in schedule.numbers)
        samples = measure.joined([life.samples for life in self._lives])
        used = measure.cpu_seconds_between(samples, begin, max(steady.values(), default=begin))
        killed_at = self._lives[0].killed_at
        later = [at for one, at in steady.items() if killed_at and schedule.due(one) >= killed_at]
        answered = len(self._wanted) - self._waiting.left
        return replace(
            judged(replace(self._turn, round=number), self._wanted, self._outputs, answered),
            latency=measure.latency([(at - schedule.due(one)) / 1_000 for one, at in steady.items()]),
            rows_per_second=measure.rows_per_second(list(steady.values())),
            cpu_seconds_per_million=used * 1_000_000 / sent,
            peak_memory_mb=max(life.peak_memory_bytes for life in self._lives) / 2**20,
            first_row_seconds=(self._first_row - self._lives[0].started_at) / 1_000_000,
            pause_milliseconds=measure.longest_gap(list(steady.values())) if self._workload.boundary else None,
            recovery_seconds=(min(later) - killed_at) / 1_000_000 if killed_at and later else None,
        )

    def _tell(self, schedule: Schedule) -> None:
        if self._receiver.stdin is not None:
            self._receiver.stdin.write(schedule.to_text() + "\n")
            self._receiver.stdin.flush()

    def _await_line(self, seconds: float) -> str:
        """What the receiver says next."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                return self._said.get(timeout=TICK_SECONDS)
            except queue.Empty:
                if self._receiver.poll() is not None:
                    raise Broken("the receiver failed") from None
                if self._lives and self._process.exit_code is not None:
                    raise ended(self._process) from None
        raise Broken(f"no answer came within {seconds:.0f} s")


@contextmanager
def _inlet(workload: Workload, servers: str, folder: Path) -> Iterator[str]:
    """Where records come in: a topic, or a folder."""
    if workload.reads == "topic":
        with topic(servers, workload.partitions) as name:
            yield name
    else:
        (folder / "incoming").mkdir()
        yield str(folder / "incoming")


def _lines(process: subprocess.Popen[str]) -> queue.Queue[str]:
    """What it says, line by line, as it comes."""
    said: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            said.put(line)

    threading.Thread(target=read, daemon=True, name="receiver").start()
    return said
