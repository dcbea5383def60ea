"""Spark's plan as operators: which columns carry a watermark, what bounds a join, where an operator stands."""

from __future__ import annotations

import time

import pytest

from penstock.engine.plan_facts import explained, plan_of_rows
from penstock.facts.streams import bounds, groups_by_event_time, has_event_time_key, keeps_state, marks

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def streams(engine):
    session = engine.session({})
    for name in ("a", "b"):
        rows = session.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS v", "value % 3 AS k")
        rows.withWatermark("ts", "10 minutes").createOrReplaceTempView(name)
    return session


def plan(session, sql):
    return plan_of_rows(session.sql(sql), "q", ["a", "b"])


def named(ids):
    return sorted(one.partition("#")[0] for one in ids)


@pytest.mark.parametrize(
    ("sql", "carried"),
    [
        ("SELECT * FROM a", ["ts"]),
        ("SELECT ts AS other, v FROM a", ["other"]),
        ("SELECT ts + INTERVAL 1 HOUR AS later FROM a", []),
        ("SELECT window, count(*) AS n FROM a GROUP BY window(ts, '1 minute')", ["window"]),
        ("SELECT window.start AS s, count(*) AS n FROM a GROUP BY window(ts, '1 minute')", []),
        ("SELECT window_time(w) AS t FROM (SELECT window AS w FROM a GROUP BY window(ts, '1 minute'))", ["t"]),
        ("SELECT a.ts, b.ts AS other FROM a JOIN b ON a.k = b.k", ["other", "ts"]),
        ("SELECT ts FROM a UNION ALL SELECT ts FROM b", ["ts"]),
    ],
)
def test_a_watermark_is_followed_through_a_plan(streams, sql, carried):
    assert named(marks(plan(streams, sql)).event_time) == carried


def test_an_operator_knows_where_it_stands(streams):
    streams.sql("SELECT k, count(*) AS n FROM a GROUP BY k").createOrReplaceTempView("b_counts")
    found = plan_of_rows(streams.sql("SELECT * FROM b_counts WHERE n > 1"), "q", ["a", "b", "b_counts"])
    assert {one.kind: one.node for one in found.walk()}["aggregate"] == "b_counts"
    assert {one.kind: one.node for one in found.walk()}["source"] == "a"
    assert [one.kind for one in found.walk() if keeps_state(one)] == ["aggregate"]


@pytest.mark.parametrize(
    ("on", "left", "right", "key"),
    [
        ("a.k = b.k", False, False, False),
        ("a.k = b.k AND a.ts = b.ts", False, False, True),
        ("a.k = b.k AND b.ts >= a.ts AND b.ts <= a.ts + INTERVAL 1 HOUR", True, True, False),
        ("a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR", True, True, False),
        ("a.k = b.k AND b.ts >= a.ts", False, True, False),
        ("a.k = b.k AND b.ts < a.ts + INTERVAL 1 HOUR", True, False, False),
        ("a.k = b.k AND a.v > b.v", False, False, False),
    ],
)
def test_what_bounds_a_join(streams, on, left, right, key):
    (join,) = [one for one in plan(streams, f"SELECT a.k FROM a JOIN b ON {on}").walk() if one.kind == "join"]
    assert (bounds(join, "left"), bounds(join, "right"), has_event_time_key(join)) == (left, right, key)


def test_groups_by_event_time_or_not(streams):
    by_window = plan(streams, "SELECT count(*) AS n FROM a GROUP BY window(ts, '1 minute')")
    by_key = plan(streams, "SELECT k, count(*) AS n FROM a GROUP BY k")
    assert groups_by_event_time(by_window)
    assert not groups_by_event_time(by_key)


def test_the_operators_that_spark_puts_in(streams):
    text, stateful = explained(streams.sql("SELECT k, count(*) AS n FROM a GROUP BY k"))
    assert "== Physical Plan ==" in text
    assert stateful == ("StateStoreSave", "StateStoreRestore", "EventTimeWatermark")


def test_thirty_steps_add_little_to_the_analysis(streams):
    """A ceiling that only a wrong order of growth breaks."""
    streams.sql("SELECT * FROM a").createOrReplaceTempView("s0")
    for number in range(1, 31):
        sql = f"SELECT ts, v + {number} AS v, k FROM s{number - 1} WHERE v > {number}"
        streams.sql(sql).createOrReplaceTempView(f"s{number}")
    rows = streams.sql("SELECT * FROM s30")
    _ = rows.schema
    began = time.process_time()
    found = plan_of_rows(rows, "q", [f"s{number}" for number in range(31)])
    assert len(list(found.walk())) > 60
    assert time.process_time() - began < 2, "in Python: what the JVM computes grows with the text"
