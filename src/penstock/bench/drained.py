"""A run without a rate: all records wait in the topic, and the contender takes them as fast as it can."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from penstock.bench import answers, measure
from penstock.bench.generate import send, waiting_records
from penstock.bench.receive import read_topic
from penstock.bench.results import Run
from penstock.bench.topics import topic
from penstock.bench.turn import NOBODY, TICK_SECONDS, Broken, Options, Turn, Watching, contender_starter, ended, judged
from penstock.bench.workloads.workload import Workload

_MOST_SECONDS = 600.0
_WARM_SHARE = 0.25


class _Reservoir:
    """The records that wait: in one topic, for all runs of a workload."""

    def __init__(self, workload: Workload, servers: str, count: int, held: ExitStack) -> None:
        records = list(waiting_records(workload, count))
        self.count = count
        self.topic = held.enter_context(topic(servers, workload.partitions))
        self.wanted = answers.expected(workload, records)
        send(servers, self.topic, records)


def drained(turns: Sequence[Turn], servers: str, options: Options, watching: Watching = NOBODY) -> list[Run]:
    """Runs the turns, which are of one workload; each starts its contender anew. One that fails is told as a run."""
    runs: list[Run] = []
    with ExitStack() as held:
        reservoir = _Reservoir(turns[0].workload, servers, options.records, held)
        for turn in turns:
            watching.on_turn(turn)
            try:
                runs.append(_run(turn, servers, reservoir))
            except Broken as broken:
                runs.append(broken.run(turn))
            watching.on_run(runs[-1])
    return runs


def _run(turn: Turn, servers: str, reservoir: _Reservoir) -> Run:
    """How fast the answers came is read from the broker's own clock afterwards: no receiver takes a core meanwhile."""
    workload = turn.workload
    with ExitStack() as held:
        results = held.enter_context(topic(servers, workload.partitions))
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        process = contender_starter(turn, servers, reservoir.topic, results, folder, held)()
        deadline = time.monotonic() + _MOST_SECONDS
        while process.exit_code is None:
            if time.monotonic() > deadline:
                raise Broken(f"it had not taken everything after {_MOST_SECONDS:g} s")
            time.sleep(TICK_SECONDS)
        if process.exit_code:
            raise ended(process)
        process.stop()
        outputs = answers.received(workload, read_topic(servers, results))
    times = answers.Waiting(reservoir.wanted).take(outputs)
    run = judged(turn, reservoir.wanted, outputs, len(times))
    steady = measure.steady_part(list(times.values()), _WARM_SHARE)
    if not steady:
        return run
    used = measure.cpu_seconds_between(process.samples, steady[0], steady[-1])
    return replace(
        run,
        rows_per_second=measure.rows_per_second(steady),
        cpu_seconds_per_million=used * 1_000_000 / (reservoir.count * (1 - _WARM_SHARE)),
        peak_memory_mb=process.peak_memory_bytes / 2**20,
        first_row_seconds=(min(times.values()) - process.started_at) / 1_000_000,
    )
