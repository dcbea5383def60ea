"""Spark's progress of a batch → facts."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.metrics.progress import from_spark

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
    },
}


@pytest.mark.covers("query.progress")
def test_a_whole_progress_becomes_facts() -> None:
    facts = from_spark("spent", PROGRESS, "written", "checks.")
    assert (facts.query, facts.batch, facts.at) == ("spent", 7, "2026-01-31T00:00:00.000Z")
    assert (facts.rows_in, facts.rows_out, facts.duration_ms) == (100, 42, 500)
    assert (facts.rows_in_per_second, facts.rows_processed_per_second) == (50.0, 200.0)
    assert facts.watermark == "2026-01-30T23:50:00.000Z"
    assert (facts.late_rows, facts.late_groups, facts.state_rows, facts.behind) == (1, 2, 15, 14.5)
    assert facts.raw is PROGRESS


def test_what_spark_leaves_out_is_not_made_up() -> None:
    facts = from_spark("spent", {}, "written", "checks.")
    assert (facts.batch, facts.rows_in, facts.rows_out, facts.duration_ms) == (-1, 0, None, 0)
    assert (facts.watermark, facts.late_rows, facts.state_rows, facts.behind) == (None, 0, None, None)


@pytest.mark.parametrize("key", [key for key in PROGRESS if key not in ("batchId", "timestamp")])
def test_null_is_the_same_as_nothing(key: str) -> None:
    without = {name: value for name, value in PROGRESS.items() if name != key}
    given = from_spark("q", {**PROGRESS, key: None}, "written", "checks.")
    assert given == from_spark("q", without, "written", "checks.")


def test_a_watermark_that_has_seen_no_row_is_none() -> None:
    progress = {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    assert from_spark("q", progress, "written", "checks.").watermark is None


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1.0, "NaN", None])
def test_a_rate_that_is_no_number_is_zero(rate: Any) -> None:
    progress = {"inputRowsPerSecond": rate, "processedRowsPerSecond": rate}
    facts = from_spark("q", progress, "written", "checks.")
    assert (facts.rows_in_per_second, facts.rows_processed_per_second) == (0.0, 0.0)


def test_what_checks_found_is_told_by_node():
    facts = from_spark("q", PROGRESS, "written", "checks.")
    assert facts.checks == {"orders": {"rows": 100, "refused": 5, "dead_letters": 4, "check.decoded": 5}}
    assert facts.refused == 5
    assert facts.bad_share == 0.05
