"""Rows from too far ahead: put aside before the watermark sees them, and judged alike by every query and replay."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.problems import UserError

pytestmark = pytest.mark.spark

FILES = {
    "in/a.csv": "1,2024-01-01T12:00:00\n2,2099-01-01T00:00:00\n3,2024-01-01T13:00:00\n4,2024-01-01T13:00:01\n5,\n",
    "in/b.csv": "6,2024-01-01T12:55:00\n",
    "in/c.csv": "7,2024-01-01T11:00:00\n",  # late: the batch before had a watermark of 12:50
    "texts/a.csv": "1,2024-01-01T12:30:00\n2,2024-06-01T00:00:00\n",
}
PIPELINE = """
pipeline: sensors
sources:
  readings:
    type: files
    path: in
    max_files_per_trigger: 1
    format: {type: csv, schema: "id INT, at TIMESTAMP"}
    watermark: {column: at, delay: 10 minutes, max_future: 1 hour}
  bare_readings: {type: files, path: in, format: {type: csv, schema: "id INT, at TIMESTAMP"}}
  bare_stock: {type: delta, path: stock}
  texts: {type: files, path: texts, format: {type: csv, schema: "id INT, said STRING"}}
  stock:
    type: delta
    path: stock
    watermark: {column: at, delay: 10 minutes, max_future: 1 hour, on_future: drop}
steps:
  single: {deduplicate: {of: readings}}
  trimmed: {sql: "SELECT id, trim(said) AS said FROM texts"}
  parsed:
    sql: SELECT id, CAST(said AS TIMESTAMP) AS at FROM trimmed WHERE id > 0
    watermark: {column: at, delay: 10 minutes, max_future: 1 hour}
  sub:
    sql: SELECT id, at FROM (SELECT id, CAST(said AS TIMESTAMP) AS at FROM texts)
    watermark: {column: at, delay: 10 minutes, max_future: 1 hour}
  united:
    sql: SELECT * FROM bare_stock UNION ALL SELECT * FROM bare_readings
    watermark: {column: at, delay: 10 minutes, max_future: 1 hour, on_future: drop}
sinks:
  united_out: {of: united, type: files, path: out/united, format: parquet}
  out: {of: single, type: files, path: out/single, format: parquet}
  parsed_out: {of: parsed, type: files, path: out/parsed, format: parquet}
  sub_out: {of: sub, type: files, path: out/sub, format: parquet}
  stock_out: {of: stock, type: files, path: out/stock, format: parquet}
"""
CAME = datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()


def came_at_noon(root: Path) -> None:
    for minutes, name in enumerate(sorted(FILES)):
        os.utime(root / name, (CAME, CAME + 0.001 * minutes))


def ids(spark, path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(path)).collect())


def letters(spark, root: Path, node: str) -> dict[int, str]:
    rows = spark.read.parquet(str(root / "dead_letters/sensors" / node)).collect()
    assert {row.check for row in rows} == {"max_future"}
    found = {json.loads(row.raw)["id"]: row.reason for row in rows}
    assert len(found) == len(rows)
    return found


def forget_last_commits(root: Path) -> None:
    """As after a crash. Not of `single`: Spark's file sink passes over a batch that it has, and so does its state."""
    for query in (root / "storage/checkpoints/sensors").glob("*/0001"):
        if query.parent.name == "single":
            continue
        last = max(int(file.name) for file in (query / "commits").iterdir() if file.name.isdigit())
        (query / f"commits/{last}").unlink()
        (query / f"commits/.{last}.crc").unlink(missing_ok=True)


def test_what_is_too_far_ahead_is_put_aside_and_moves_no_watermark(project_at, run_once, spark):
    root = project_at(PIPELINE, files=FILES)
    came_at_noon(root)
    rows = "SELECT 1 AS id, current_timestamp() AS at UNION ALL SELECT 2, current_timestamp() + INTERVAL 2 HOURS"
    spark.sql(rows).write.format("delta").save(str(root / "stock"))
    result = run_once(root)
    assert result.ok, result.problems
    assert not result.problems  # both queries have counted alike
    # Row 6 is 5 minutes behind row 3; had row 2 or 4 been seen by the watermark, or 7 not, it would tell.
    assert ids(spark, root / "out/single") == [1, 3, 5, 6]
    aside = letters(spark, root, "readings")
    assert sorted(aside) == [2, 4]
    assert aside[4] == "`at` is 2024-01-01 13:00:01, more than 1 hour after it came at 2024-01-01 12:00:00"
    view = next(query for query in result.queries if query.name == "single")
    assert (view.bad_rows, view.checks["readings.max_future"], view.late_rows) == (2, 2, 1)
    # A step goes by the time at which the record came to its source.
    assert ids(spark, root / "out/parsed") == [1]
    assert list(letters(spark, root, "parsed")) == [2]
    # Out of a subquery that time cannot be had: the time of the batch counts.
    assert ids(spark, root / "out/sub") == [1, 2]
    # A table does not say when a row came.
    assert ids(spark, root / "out/stock") == [1]
    # Nothing hidden stands in the way of a UNION by position.
    assert ids(spark, root / "out/united") == [1, 1, 3, 4, 5, 6, 7]

    forget_last_commits(root)
    again = run_once(root)
    assert again.ok, again.problems
    assert ids(spark, root / "out/single") == [1, 3, 5, 6]
    assert sorted(letters(spark, root, "readings")) == [2, 4]
    assert ids(spark, root / "out/stock") == [1]


@pytest.mark.services
def test_records_of_kafka_are_judged_by_their_time_there(project_at, run_once, spark, kafka, topic):
    from confluent_kafka import Producer

    name = topic(**{"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)})
    producer = Producer({"bootstrap.servers": kafka.servers})
    noon = int(CAME * 1_000)
    far = int(datetime(2099, 1, 1, tzinfo=UTC).timestamp() * 1_000)
    # The last comes from a producer whose clock is wrong as a whole: the time of the batch counts.
    for number, (said, came) in enumerate((("12:30:00", noon), ("13:30:00", noon), ("2099", far))):
        at = "2099-01-01T00:00:00" if said == "2099" else f"2024-01-01T{said}"
        producer.produce(name, json.dumps({"id": number, "at": at}), timestamp=came)
    assert producer.flush(30) == 0
    root = project_at(
        f"""
        pipeline: sensors
        sources:
          readings:
            type: kafka
            servers: {kafka.servers}
            topics: [{name}]
            starting: earliest
            format: {{type: json, schema: "id INT, at TIMESTAMP"}}
            watermark: {{column: at, delay: 10 minutes, max_future: 1 hour}}
        sinks: {{out: {{of: readings, type: files, path: out, format: parquet}}}}
        """
    )
    result = run_once(root)
    assert result.ok, result.problems
    assert ids(spark, root / "out") == [0]
    assert sorted(letters(spark, root, "readings")) == [1, 2]


def test_fail_stops_at_the_row(project_at, run_once):
    text = """
    pipeline: sensors
    sources:
      readings:
        type: files
        path: in
        format: {type: csv, schema: "id INT, at TIMESTAMP"}
        watermark: {column: at, delay: 10 minutes, max_future: 1 hour, on_future: fail}
    sinks: {out: {of: readings, type: files, path: out, format: parquet}}
    """
    root = project_at(text, files={"in/a.csv": "1,2099-01-01T00:00:00\n"})
    problem = run_once(root).problems[-1]
    assert problem.code == "RECORD001"
    assert "`at` is 2099-01-01 00:00:00, more than 1 hour after it came" in problem.message
    assert str(problem.where) == "pipelines/p0.yaml:7:60"


def test_a_step_that_keeps_state_cannot_put_rows_aside(project_at, run_once):
    text = """
    pipeline: sensors
    sources: {readings: {type: files, path: in, format: {type: csv, schema: "id INT, at TIMESTAMP"}}}
    steps: {single: {sql: "SELECT DISTINCT id, at FROM readings",
                     watermark: {column: at, delay: 1 minute, max_future: 1 hour}}}
    sinks: {out: {of: single, type: files, path: out, format: parquet}}
    """
    root = project_at(text, files={"in/a.csv": "1,2024-01-01T00:00:00\n"})
    problems = [problem for problem in run_once(root).problems if problem.code == "EXPECT001"]
    assert {str(problem.where) for problem in problems} == {"pipelines/p0.yaml:4:71"}
    assert problems[0].fix == "set `max_future` on a source or a step before it"


def test_on_future_needs_a_limit(read):
    with pytest.raises(UserError) as raised:
        read(
            "pipeline: p\nsources: {a: {type: rate, watermark: {column: timestamp, delay: 1 s, on_future: drop}}}\n"
            "sinks: {o: {of: a, type: console}}\n"
        )
    assert "`on_future` says what becomes of rows beyond `max_future`" in raised.value.problems[0].message
