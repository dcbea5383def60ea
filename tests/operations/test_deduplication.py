"""Duplicates: by key for ever, by key and event time, and by key within the watermark's delay."""

from __future__ import annotations

import pytest

from tests.operations.cases import SETTINGS, Case, files, in_order, late_of, pipeline, rows_of

_SOURCE = """
  type: files
  path: orders
  max_files_per_trigger: 1
  format: {type: csv, schema: "at TIMESTAMP, id INT"}
"""
SOURCES = f"unmarked:{_SOURCE}orders:{_SOURCE}  watermark: {{column: at, delay: 10 minutes}}\n"
ORDERS = files(
    "orders",
    "00:00,1 | 00:00,1 | 00:01,2",
    "00:00,1 | 00:05,1 | 00:06,3",  # the same again, and sent again with another time
    "00:40,4",
    "00:41,5",
    # The first is late: rows are judged by the watermark that the batch before had, 00:30. The same id, long after.
    "00:01,2 | 00:42,1",
)
_EACH_TIME = ["00:00 1", "00:01 2", "00:05 1", "00:06 3", "00:40 4", "00:41 5", "00:42 1"]


def case(name: str, of: str, keys: str, rows: list[str], covers: str, late: tuple[int, int] = (0, 0)) -> Case:
    """A step that takes duplicates out, and one that shows the times of what is left."""
    return Case(
        f"{name}_shown",
        f"SELECT date_format(at, 'HH:mm'), id FROM {name}",
        rows,
        (covers,),
        late=late,
        before={name: f"deduplicate: {{of: {of}{keys}}}"},
    )


CASES = (
    case(
        "by_key", "unmarked", ", keys: [id]", ["00:00 1", "00:01 2", "00:06 3", "00:40 4", "00:41 5"], "dedup.unbounded"
    ),
    case("by_all", "unmarked", "", _EACH_TIME, "dedup.unbounded"),
    case("by_time", "orders", ", keys: [ID, at]", _EACH_TIME, "dedup.watermark", (1, 0)),
    case(
        "in_delay",
        "orders",
        ", keys: [id], within_watermark: true",
        ["00:00 1", "00:01 2", "00:06 3", "00:40 4", "00:41 5", "00:42 1"],
        "dedup.within",
        (1, 0),
    ),
    Case(
        "by_distinct",
        "SELECT date_format(at, 'HH:mm'), id FROM (SELECT DISTINCT at, id FROM orders)",
        _EACH_TIME[:4],  # an aggregation: a row comes out when the watermark has passed it, and groups are late
        ("dedup.watermark",),
        late=(0, 1),
    ),
)


@pytest.mark.spark
@pytest.mark.covers(*sorted({feature for case in CASES for feature in case.covers}))
def test_duplicates_are_left_out(project_at, run_once):
    root = project_at(pipeline("dedup", SOURCES, CASES), files=ORDERS, settings=SETTINGS)
    in_order(root, ORDERS)
    result = run_once(root)
    assert result.ok, result.problems
    assert {case.name: (rows_of(case), late_of(case, result.queries)) for case in CASES} == {
        case.name: (sorted(case.rows), case.late) for case in CASES
    }


@pytest.mark.spark
def test_a_key_that_is_no_column(project_at, run_once):
    text = """
    pipeline: dedup
    sources: {orders: {type: files, path: in, format: {type: csv, schema: "order_id INT, at TIMESTAMP"}}}
    steps: {single: {deduplicate: {of: orders, keys: [at, ordr_id]}}}
    sinks: {out: {of: single, type: console}}
    """
    (problem,) = run_once(project_at(text, files={"in/a.csv": "1,2024-01-01T00:00:00\n"})).problems
    assert problem.code == "DEDUPLICATE001"
    assert problem.message == "`orders` has no column `ordr_id` — did you mean `order_id`?"
    assert str(problem.where) == "pipelines/p0.yaml:3:55"


@pytest.mark.covers("dedup.within.needs-watermark")
def test_within_a_watermark_needs_one_and_that_is_known_without_spark(judged):
    text = """
pipeline: dedup
sources: {ticks: {type: rate}}
steps:
  few: {sql: "SELECT value AS id, timestamp FROM ticks"}
  single: {deduplicate: {of: few, keys: [id], within_watermark: true}}
sinks: {out: {of: single, type: console}}
"""
    assert [problem.code for problem in judged(text)] == ["OPERATION009"]
    marked = text.replace("{type: rate}", "{type: rate, watermark: {column: timestamp, delay: 1 minute}}")
    assert judged(marked) == ()
    unknown = text.replace("of: few", "of: fwe")
    assert [problem.code for problem in judged(unknown)] == ["GRAPH001"]


def test_the_same_in_python(read):
    from penstock import Pipeline, sinks, sources

    pipeline = Pipeline("dedup")
    pipeline.source("ticks", sources.Rate(watermark={"column": "timestamp", "delay": "1 minute"}))
    pipeline.deduplicate("single", of="ticks", keys=["value"], within_watermark=True)
    pipeline.sink("out", sinks.Console(), of="single")
    assert pipeline.build() == read(
        "pipeline: dedup\nsources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}\n"
        "steps: {single: {deduplicate: {of: ticks, keys: [value], within_watermark: true}}}\n"
        "sinks: {out: {of: single, type: console}}\n"
    )
