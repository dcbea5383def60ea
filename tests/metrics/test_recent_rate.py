"""A rate, from counts that are read now and then."""

from __future__ import annotations

from penstock.metrics.recent_rate import RecentRate


def rate_of(*read: tuple[float, int]) -> float | None:
    rate = RecentRate()
    for at_seconds, count in read:
        rate.add(at_seconds, count)
    return rate.per_second


def test_a_rate_needs_two_counts() -> None:
    assert rate_of() is None
    assert rate_of((0, 5)) is None
    assert rate_of((0, 5), (0, 5)) is None
    assert rate_of((0, 5), (2, 9)) == 2


def test_what_is_long_ago_does_not_count() -> None:
    assert rate_of((0, 0), (1, 10_000), (11, 10_100)) == 10
    assert rate_of((0, 0), (60, 100)) is None


def test_a_count_that_goes_back_begins_anew() -> None:
    assert rate_of((0, 100), (1, 0)) is None
    assert rate_of((0, 100), (1, 0), (2, 7)) == 7
