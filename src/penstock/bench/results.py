"""What was measured: one run, and all runs of a workload set side by side. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from penstock.bench import measure
from penstock.bench.measure import Latency, Ratio


@dataclass(frozen=True)
class Run:
    """One contender in one round of a workload. It counts when it has no problem."""

    workload: str
    contender: str
    round: int
    problem: str | None = None
    digest: str = ""
    answers: int = 0
    latency: Latency | None = None
    rows_per_second: float = 0.0
    cpu_seconds_per_million: float = 0.0
    peak_memory_mb: float = 0.0
    first_row_seconds: float = 0.0
    recovery_seconds: float | None = None
    """From a crash until a record that came after it was answered."""
    pause_milliseconds: float | None = None
    """The longest time in which no answer came, where it is sought."""
    log_milliseconds: float | None = None
    """What a micro-batch takes to write down where it began and that it ended, on average."""

    @property
    def pace(self) -> float:
        """What is compared from round to round: the median latency, or the rate where there is none."""
        return self.latency.p50 if self.latency else self.rows_per_second


@dataclass(frozen=True)
class Line:
    """A contender over the rounds that count: the median of each figure."""

    contender: str
    rounds: int
    latency: Latency | None
    rows_per_second: float
    cpu_seconds_per_million: float
    peak_memory_mb: float
    first_row_seconds: float
    recovery_seconds: float | None = None
    pause_milliseconds: float | None = None
    log_milliseconds: float | None = None


@dataclass(frozen=True)
class Comparison:
    """One contender by another, over paired rounds; below 1 is less."""

    ours: str
    theirs: str
    figure: str
    ratio: Ratio


@dataclass(frozen=True)
class Summary:
    """A workload: its lines, what they are to each other, and what did not count."""

    workload: str
    title: str
    lines: tuple[Line, ...]
    comparisons: tuple[Comparison, ...]
    dropped_rounds: tuple[int, ...]
    """Rounds in which the floor drifted."""
    failed: tuple[Run, ...]
    skipped: tuple[tuple[str, str], ...]
    """Contenders that took no part, and why."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summary(
    workload: str,
    title: str,
    runs: Iterable[Run],
    floor: str,
    ours: Sequence[str],
    skipped: Iterable[tuple[str, str]] = (),
) -> Summary:
    """Without the runs that failed or whose result differs, and without the rounds in which the floor drifted."""
    given = list(runs)
    counted = [run for run in given if run.problem is None]
    of_floor = {run.round: run.pace for run in counted if run.contender == floor}
    rounds = {run.round for run in given}
    # Without a floor to judge by, every round is kept.
    kept = measure.steady_rounds(of_floor) if of_floor else rounds
    steady = [run for run in counted if run.round in kept]
    names = list(dict.fromkeys(run.contender for run in given))
    lines = [_line(name, [run for run in steady if run.contender == name]) for name in names]
    return Summary(
        workload,
        title,
        tuple(line for line in lines if line.rounds),
        tuple(_comparisons(ours, [name for name in names if name not in ours], steady)),
        tuple(sorted(rounds - kept)),
        tuple(run for run in given if run.problem is not None),
        tuple(skipped),
    )


def _line(contender: str, runs: list[Run]) -> Line:
    latencies = [run.latency for run in runs if run.latency]
    points = zip(*(one.points().values() for one in latencies), strict=True)
    return Line(
        contender,
        len(runs),
        Latency(*(statistics.median(point) for point in points)) if latencies else None,
        _median(run.rows_per_second for run in runs),
        _median(run.cpu_seconds_per_million for run in runs),
        _median(run.peak_memory_mb for run in runs),
        _median(run.first_row_seconds for run in runs),
        _median_if_any(run.recovery_seconds for run in runs),
        _median_if_any(run.pause_milliseconds for run in runs),
        _median_if_any(run.log_milliseconds for run in runs),
    )


def _median(values: Iterable[float]) -> float:
    return _median_if_any(values) or 0.0


def _median_if_any(values: Iterable[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return statistics.median(given) if given else None


def _comparisons(ours: Sequence[str], others: list[str], runs: list[Run]) -> Iterable[Comparison]:
    figures: dict[str, Callable[[Run], float | None]] = {
        "p50": lambda run: run.latency.p50 if run.latency else None,
        "p95": lambda run: run.latency.p95 if run.latency else None,
        "p99": lambda run: run.latency.p99 if run.latency else None,
        "rate": lambda run: None if run.latency else run.rows_per_second,
        "cpu": lambda run: run.cpu_seconds_per_million,
    }
    for one, theirs, figure in product(ours, others, figures):
        of = {
            name: {run.round: found for run in runs if run.contender == name and (found := figures[figure](run))}
            for name in (one, theirs)
        }
        if ratio := measure.paired_ratio(of[one], of[theirs]):
            yield Comparison(one, theirs, figure, ratio)
