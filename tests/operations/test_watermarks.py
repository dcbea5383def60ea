"""Several watermarks in one query, and which of them counts."""

from __future__ import annotations

import json

import pytest

from tests.operations.cases import SETTINGS, Case, files, in_order, late_of, pipeline, rows_of

pytestmark = pytest.mark.spark

_SOURCE = """
  type: files
  max_files_per_trigger: 1
  format: {type: csv, schema: "at TIMESTAMP, n INT"}
  watermark: {column: at, delay: 10 minutes}
"""
SOURCES = f"fast:\n  path: fast{_SOURCE}slow:\n  path: slow{_SOURCE}"
ROWS = files("fast", "01:00,1", "01:01,2", "01:02,3") | files("slow", "00:05,4", "00:08,5", "00:09,6")
_BOTH = (
    "SELECT date_format(window.start, 'HH:mm'), sum(n) FROM (SELECT * FROM fast UNION ALL SELECT * FROM slow)"
    " GROUP BY window(at, '10 minutes')"
)
CASES = (
    # The watermark stays at 00:00 while the slow one is at 00:09: nothing is closed, and nothing late.
    Case("slowest", _BOTH, [], ("watermarks.min",), late=(0, 0)),
    # The watermark is at 00:50 after the first batch: the second closes the window, and in the third it is late.
    Case("fastest", _BOTH, ["00:00 9"], ("watermarks.max",), settings="{watermark_policy: max}", late=(0, 1)),
)


@pytest.mark.covers("watermarks.min", "watermarks.max")
def test_the_slowest_or_the_fastest_input_counts(project_at, run_once):
    root = project_at(pipeline("policies", SOURCES, CASES), files=ROWS, settings=SETTINGS)
    in_order(root, ROWS)
    result = run_once(root)
    assert result.ok, result.problems
    assert {case.name: (rows_of(case), late_of(case, result.queries)) for case in CASES} == {
        case.name: (case.rows, case.late) for case in CASES
    }
    manifest = json.loads((root / "storage/checkpoints/policies/fastest/0001.json").read_text())
    assert manifest["settings"]["spark.sql.streaming.multipleWatermarkPolicy"] == "max"
