"""The session time zone of a query with state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.facts.signature import Signature, StateOperator, WatermarkOn
from penstock.plan.time_zone import zone_findings

BY_DAY = Signature(
    "4.1.3", ("a",), (StateOperator("aggregate", ("to_date(a.at)",), ("count(1)",)),), types={"a.at": "timestamp"},
    zone="UTC",
)  # fmt: skip


def codes(before: Signature, zone: str) -> list[tuple[str, str]]:
    return [(one.code, one.verdict) for one in zone_findings(before, zone, "q", "penstock checkpoint reset p.q", None)]


def test_state_by_day_belongs_to_its_zone() -> None:
    assert codes(BY_DAY, "Asia/Tokyo") == [("PLAN032", "restart")]


@pytest.mark.parametrize("operator", [
    StateOperator("deduplicate", ("a.at",)),
    StateOperator("join", ("a.k", "b.k"), stored=(("a.k", "a.at"), ("b.k",))),
    StateOperator("aggregate", ("a.k",), ("max(cast(a.text as timestamp))",)),
])  # fmt: skip
def test_so_does_whatever_else_holds_a_time(operator: StateOperator) -> None:
    assert codes(replace(BY_DAY, operators=(operator,)), "Asia/Tokyo") == [("PLAN032", "restart")]


def test_a_watermark_is_a_time_too() -> None:
    counted = replace(BY_DAY, operators=(StateOperator("aggregate", ("a.k",), ("count(1)",)),))
    assert codes(counted, "Asia/Tokyo") == []
    assert codes(replace(counted, watermarks=(WatermarkOn("a.at", "1 minute"),)), "Asia/Tokyo") != []


@pytest.mark.parametrize("zone", ["UTC", "Z", "Etc/UTC", "GMT", "+00:00"])
def test_names_of_the_same_zone_are_the_same(zone: str) -> None:
    assert codes(BY_DAY, zone) == []


def test_nothing_is_said_without_state_or_without_a_recorded_zone() -> None:
    assert codes(replace(BY_DAY, operators=()), "Asia/Tokyo") == []
    assert codes(replace(BY_DAY, zone=""), "Asia/Tokyo") == []
