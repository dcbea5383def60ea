"""Spark's progress of a batch → facts."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.facts.observed import ProgressFacts, RecordTimes
from penstock.metrics.progress import from_spark, pause_ms

NAMES = ("written", "checks.", "times.")
PROGRESS: dict[str, Any] = {
    "batchId": 7,
    "timestamp": "2026-01-31T00:00:00.000Z",
    "numInputRows": 100,
    "inputRowsPerSecond": 50.0,
    "processedRowsPerSecond": 200.0,
    "durationMs": {"triggerExecution": 500, "addBatch": 400},
    "eventTime": {"watermark": "2026-01-30T23:50:00.000Z", "max": "2026-01-31T00:00:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 10, "numRowsDroppedByWatermark": 1, "operatorName": "dedupe"},
        {"numRowsTotal": 5, "numRowsDroppedByWatermark": 2, "operatorName": "stateStoreSave"},
    ],
    "sources": [
        {"description": "KafkaV2[a]", "metrics": {"avgOffsetsBehindLatest": "12.5"}},
        {"description": "KafkaV2[b]", "metrics": {"avgOffsetsBehindLatest": "2"}},
        {"description": "files"},
    ],
    "observedMetrics": {
        "written": {"rows": 42},
        "other": {"rows": 1},
        "checks.orders": {"rows": 100, "refused": 5, "dead_letters": 4, "check.decoded": 5},
        "times.orders": {
            "bins": [{"x": x, "y": y} for x, y in ((2, 50.0), (4, 45.0), (9, 4.0), (30, 1.0))],
            "max": 30,
            "records": 100,
            "first": 1_000,
            "last": 6_000,
        },
        "times.clicks": {"bins": [{"x": 5, "y": 9.0}], "max": 40, "records": 9, "first": 1_100, "last": 5_000},
        "times.silent": {"bins": None, "max": None, "records": 0, "first": None, "last": None},
    },
    "runId": "run-1",
}


@pytest.mark.covers("query.progress")
def test_a_whole_progress_becomes_facts() -> None:
    facts = from_spark("spent", PROGRESS, *NAMES)
    assert (facts.query, facts.batch, facts.at) == ("spent", 7, "2026-01-31T00:00:00.000Z")
    assert (facts.rows_in, facts.rows_out, facts.duration_ms) == (100, 42, 500)
    assert (facts.rows_in_per_second, facts.rows_processed_per_second) == (50.0, 200.0)
    assert facts.watermark == "2026-01-30T23:50:00.000Z"
    assert (facts.late_rows, facts.late_groups, facts.state_rows, facts.behind) == (1, 2, 15, 14.5)
    assert facts.raw is PROGRESS


def test_what_spark_leaves_out_is_not_made_up() -> None:
    facts = from_spark("spent", {}, *NAMES)
    assert (facts.batch, facts.rows_in, facts.rows_out, facts.duration_ms) == (-1, 0, None, 0)
    assert (facts.watermark, facts.late_rows, facts.state_rows, facts.behind) == (None, 0, None, None)


@pytest.mark.parametrize("key", [key for key in PROGRESS if key not in ("batchId", "timestamp")])
def test_null_is_the_same_as_nothing(key: str) -> None:
    without = {name: value for name, value in PROGRESS.items() if name != key}
    given = from_spark("q", {**PROGRESS, key: None}, *NAMES)
    assert given == from_spark("q", without, *NAMES)


def test_a_watermark_that_has_seen_no_row_is_none() -> None:
    progress = {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    assert from_spark("q", progress, *NAMES).watermark is None


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1.0, "NaN", None])
def test_a_rate_that_is_no_number_is_zero(rate: Any) -> None:
    progress = {"inputRowsPerSecond": rate, "processedRowsPerSecond": rate}
    facts = from_spark("q", progress, *NAMES)
    assert (facts.rows_in_per_second, facts.rows_processed_per_second) == (0.0, 0.0)


def test_what_checks_found_is_told_by_node():
    facts = from_spark("q", PROGRESS, *NAMES)
    assert facts.checks == {"orders": {"rows": 100, "refused": 5, "dead_letters": 4, "check.decoded": 5}}
    assert facts.refused == 5
    assert facts.bad_share == 0.05


def test_how_late_records_came_is_told_by_source():
    facts = from_spark("q", PROGRESS, *NAMES)
    assert facts.times == {
        "orders": RecordTimes(2, 4, 9, 30, 100, 1_000, 6_000),
        "clicks": RecordTimes(5, 5, 5, 40, 9, 1_100, 5_000),
    }
    assert facts.slowest == facts.times["orders"]
    assert from_spark("q", {}, *NAMES).slowest is None


def batch(number: int, run: str = "run-1", **sources: tuple[int, int]) -> ProgressFacts:
    """A batch whose sources had their first and their last record at these times."""
    times = {
        f"times.{name}": {"bins": [{"x": 1, "y": 2.0}], "max": 1, "records": 2, "first": first, "last": last}
        for name, (first, last) in sources.items()
    }
    return from_spark("q", {"batchId": number, "runId": run, "observedMetrics": times}, *NAMES)


BEFORE = batch(7, orders=(0, 5_000), clicks=(0, 4_000))


@pytest.mark.parametrize(
    ("after", "pause"),
    [
        (batch(8, orders=(5_240, 9_000)), 240),
        (batch(8, orders=(5_240, 9_000), clicks=(5_200, 9_000)), 200),
        (batch(8, orders=(4_990, 9_000)), 0),  # clocks of two machines
        (batch(9, orders=(9_000, 9_900)), None),  # what came between is not known
        (batch(8, run="run-2", orders=(5_240, 9_000)), None),  # it was started again
        (batch(8), None),  # no record came
    ],
)
def test_the_pause_is_from_the_last_record_of_a_batch_to_the_first_of_the_next(after, pause):
    assert pause_ms(BEFORE, after) == pause
    assert pause_ms(batch(7), after) is None
    assert pause_ms(None, after) is None
