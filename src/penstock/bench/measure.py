"""From times and counts to figures. Pure: nothing here looks at a clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

DRIFT = 1.5
"""The floor has drifted when it is so many times slower or faster than in its median round."""
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Latency:
    """From the time at which a record was due until its answer came, in milliseconds."""

    p50: float
    p95: float
    p99: float
    p999: float
    max: float

    def points(self) -> dict[str, float]:
        return {"p50": self.p50, "p95": self.p95, "p99": self.p99, "p99.9": self.p999, "max": self.max}


@dataclass(frozen=True)
class Sample:
    """What a contender's processes had used at one moment."""

    at: int
    """Microseconds since 1970."""
    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Ratio:
    """The median of paired ratios, and an interval that holds the true median with the given confidence at least."""

    median: float
    low: float
    high: float
    confidence: float
    rounds: int


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed: always one that was measured."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latency(milliseconds: Sequence[float]) -> Latency | None:
    """None when there are no values."""
    if not milliseconds:
        return None
    ordered = sorted(milliseconds)
    p50, p95, p99, p999 = (percentile(ordered, share) for share in (0.5, 0.95, 0.99, 0.999))
    return Latency(p50, p95, p99, p999, ordered[-1])


def rows_per_second(times: Sequence[int]) -> float:
    """How many rows a second came after the first of them; times are in microseconds."""
    span = max(times) - min(times) if times else 0
    return (len(times) - 1) / (span / 1_000_000) if span else 0.0


def longest_gap(times: Sequence[int]) -> float:
    """The longest time in which nothing came, in milliseconds; times are in microseconds."""
    return max((later - earlier for earlier, later in pairwise(sorted(times))), default=0) / 1_000


def steady_part(times: Sequence[int], warm_share: float) -> list[int]:
    """The times in order, without the first share of them."""
    ordered = sorted(times)
    return ordered[int(len(ordered) * warm_share) :]


def joined(lives: Sequence[Sequence[Sample]]) -> list[Sample]:
    """The samples of processes that followed each other, as those of one: each begins at no CPU time."""
    samples: list[Sample] = []
    for life in lives:
        before = samples[-1].cpu_seconds if samples else 0.0
        samples += [replace(one, cpu_seconds=before + one.cpu_seconds) for one in life]
    return samples


def cpu_seconds_between(samples: Sequence[Sample], begin: int, end: int) -> float:
    """What was used from one moment to another, in a straight line between samples."""
    return _cpu_at(samples, end) - _cpu_at(samples, begin)


def _cpu_at(samples: Sequence[Sample], at: int) -> float:
    if not samples:
        return 0.0
    before = max((one for one in samples if one.at <= at), key=lambda one: one.at, default=samples[0])
    after = min((one for one in samples if one.at >= at), key=lambda one: one.at, default=samples[-1])
    if after.at <= before.at:
        return before.cpu_seconds
    share = (at - before.at) / (after.at - before.at)
    return before.cpu_seconds + share * (after.cpu_seconds - before.cpu_seconds)


def paired_ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Ratio | None:
    """Ours by theirs, round by round; None when they share no round."""
    ratios = sorted(ours[one] / theirs[one] for one in ours.keys() & theirs.keys() if theirs[one])
    if not ratios:
        return None
    skipped, confidence = _skipped(len(ratios))
    return Ratio(statistics.median(ratios), ratios[skipped], ratios[-1 - skipped], confidence, len(ratios))


def _skipped(count: int) -> tuple[int, float]:
    """How many of the ordered values may be left out at each end, and the confidence that remains.

    Each value lies above the true median with a chance of one half, so their number is binomial. Few values have no
    interval of 95 %: then it is the whole range, with the confidence that this has.
    """
    outside = [2 * sum(math.comb(count, k) for k in range(left + 1)) / 2**count for left in range(count)]
    allowed = [left for left in range((count + 1) // 2) if 1 - outside[left] >= _CONFIDENCE]
    left = max(allowed, default=0)
    return left, max(0.0, 1 - outside[left])


def steady_rounds(floor: Mapping[int, float]) -> frozenset[int]:
    """The rounds in which the floor was near its own median; the others tell of the machine, not of contenders."""
    if not floor:
        return frozenset()
    median = statistics.median(floor.values())
    return frozenset(one for one, value in floor.items() if median / DRIFT <= value <= median * DRIFT)
