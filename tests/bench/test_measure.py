"""Figures from times and counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench import measure
from penstock.bench.measure import Sample

VALUES = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=200)


@given(VALUES)
def test_percentiles_are_measured_values_in_order(values):
    found = measure.latency(values)
    points = list(found.points().values())
    assert points == sorted(points)
    assert set(points) <= set(values)
    assert found.max == max(values)


@given(VALUES, st.floats(0.01, 1.0))
def test_a_percentile_is_not_exceeded_by_its_share(values, share):
    found = measure.percentile(sorted(values), share)
    assert sum(value <= found for value in values) >= math.floor(share * len(values))
    assert sum(value < found for value in values) < share * len(values) + 1e-9


def test_no_values_have_no_latency():
    assert measure.latency([]) is None


def test_of_a_thousand_values():
    found = measure.latency([float(value) for value in range(1, 1_001)])
    assert found.points() == {"p50": 500, "p95": 950, "p99": 990, "p99.9": 999, "max": 1_000}


def test_the_rate_counts_rows_after_the_first():
    assert measure.rows_per_second([0, 500_000, 1_000_000]) == 2
    assert measure.rows_per_second([7]) == 0
    assert measure.rows_per_second([]) == 0


def test_the_longest_gap_is_the_time_in_which_nothing_came():
    assert measure.longest_gap([9_000, 1_000, 2_500]) == 6.5
    assert measure.longest_gap([7]) == measure.longest_gap([]) == 0


def test_the_steady_part_leaves_the_first_rows_out():
    assert measure.steady_part([4, 1, 3, 2], 0.25) == [2, 3, 4]


def test_cpu_between_two_samples_is_a_straight_line():
    samples = [Sample(0, 1.0, 0), Sample(10, 3.0, 0), Sample(20, 3.0, 0)]
    assert measure.cpu_seconds_between(samples, 5, 20) == 1.0
    assert measure.cpu_seconds_between(samples, -5, 100) == 2.0
    assert measure.cpu_seconds_between([], 0, 1) == 0


def test_ratios_are_paired_by_round():
    ratio = measure.paired_ratio({1: 2.0, 2: 3.0, 3: 9.0, 4: 1.0}, {1: 1.0, 2: 3.0, 3: 3.0})
    assert (ratio.median, ratio.low, ratio.high, ratio.rounds) == (2.0, 1.0, 3.0, 3)
    assert measure.paired_ratio({1: 1.0}, {2: 1.0}) is None


@pytest.mark.parametrize(("rounds", "low", "confidence"), [(1, 1, 0), (3, 1, 0.75), (6, 1, 0.96875), (9, 2, 0.9609375)])
def test_the_interval_is_as_narrow_as_the_rounds_allow(rounds, low, confidence):
    ratio = measure.paired_ratio({n: float(n) for n in range(1, rounds + 1)}, dict.fromkeys(range(1, rounds + 1), 1.0))
    assert (ratio.low, ratio.high) == (low, rounds + 1 - low)
    assert ratio.confidence == pytest.approx(confidence)


def test_rounds_in_which_the_floor_drifted_are_left_out():
    assert measure.steady_rounds({1: 1.0, 2: 1.1, 3: 5.0, 4: 0.5, 5: 1.2}) == {1, 2, 5}
    assert measure.steady_rounds({}) == frozenset()


def test_lives_that_follow_each_other_are_one():
    joined = measure.joined([[Sample(0, 1.0, 5), Sample(1, 2.0, 6)], [Sample(2, 0.5, 7)], []])
    assert [(one.at, one.cpu_seconds) for one in joined] == [(0, 1.0), (1, 2.0), (2, 2.5)]
