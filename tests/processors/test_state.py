"""The state of ready-made processors is bounded, and each key has one timer at most. Without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.types import DayTimeIntervalType, IntegerType, LongType, MapType, StringType, StructType, TimestampType

from penstock.processors import READY_MADE
from penstock.testing import ProcessorTester

START = datetime(2026, 3, 1, tzinfo=UTC)
MAP = MapType(StringType(), TimestampType())
ROWS = (
    StructType()
    .add("key", StringType())
    .add("at", TimestampType(), metadata={"spark.watermarkDelayMs": 0})
    .add("value", IntegerType())
)


def moment(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def row(minute: float | None, value: int | None = 1) -> dict[str, Any]:
    return {"key": "a", "at": None if minute is None else moment(minute), "value": value}


def made(word: str, **options: Any) -> ProcessorTester:
    spec = READY_MADE[word].model_validate(options)
    return ProcessorTester(spec.processor(ROWS, ["key"]), key=["key"], time=spec.time_mode)


def timers(tested: ProcessorTester) -> list[float]:
    return [(timer / 1_000 - START.timestamp()) / 60 for timer in tested.timers("a")]


def test_a_closed_session_leaves_nothing():
    tested = made("sessionize", time="at", gap="10 minutes", aggregates={"last": "last(value)"})
    assert tested.batch([row(0), row(30, 2), row(35, None)], watermark=moment(0)) == []
    assert timers(tested) == [10]
    tested.restart()
    (first,) = tested.advance(watermark=moment(25))
    assert (first.session_start, first.session_end, first.events, first.last) == (moment(0), moment(0), 1, 1)
    assert timers(tested) == [45]
    (second,) = tested.advance(watermark=moment(45))
    assert (second.session_start, second.session_end, second.events, second.last) == (moment(30), moment(35), 2, 2)
    assert (tested.state("sessions"), timers(tested)) == ({}, [])


def test_rows_behind_the_longest_span_are_forgotten():
    tested = made("velocity", time="at", spans=["5 minutes", "20 minutes"], sums=["value"])
    tested.batch([row(0), row(10), row(12, None)], watermark=moment(0))
    assert timers(tested) == [32]
    (counted,) = tested.batch([row(21)], watermark=moment(15))
    assert (counted.count_20_minutes, counted.sum_value_20_minutes) == (3, 2)
    assert len(tested.state("recent", "a")) == 4
    tested.batch([row(22)], watermark=moment(31))
    assert len(tested.state("recent", "a")) == 3
    assert timers(tested) == [42]
    tested.advance(watermark=moment(42))
    assert (tested.state("recent"), timers(tested)) == ({}, [])


def test_only_rows_that_may_get_a_place_are_kept():
    tested = made("top_n", n=1, by="value", time="at", span="10 minutes")
    (best,) = tested.batch([row(1, 5), row(2, 3), row(0, 4), row(3, 2)], watermark=moment(0))
    assert (best.rank, best.value) == (1, 5)
    assert sorted(value for _, _, value in tested.state("candidates", "a")) == [2, 3, 5]
    assert timers(tested) == [11]
    (second,) = tested.advance(watermark=moment(11))
    assert (second.rank, second.value, second.at) == (1, 3, moment(2))
    (nobody,) = tested.advance(watermark=moment(13))
    assert (nobody.key, nobody.rank, nobody.value, nobody.at) == ("a", 1, None, None)
    assert (tested.state("candidates"), timers(tested)) == ({}, [])


def test_a_ranking_of_all_time_keeps_its_places():
    tested = made("top_n", n=2, by="value")
    tested.batch([row(None, value) for value in range(10)])
    assert [value for _, _, value in tested.state("candidates", "a")] == [9, 8]
    assert tested.batch([row(1, 3), row(1, None)]) == []


def test_the_least_first():
    tested = made("top_n", n=2, by="value", order="least")
    assert [told.value for told in tested.batch([row(1, 5), row(2, 3), row(3, 4)])] == [3, 4]
    assert [(told.rank, told.value) for told in tested.batch([row(4, 1)])] == [(1, 1), (2, 3)]


@pytest.mark.parametrize(("forget_after", "status"), [(None, "returned"), ("1 hour", "seen")])
def test_an_absent_key_is_kept_until_it_is_forgotten(forget_after, status):
    tested = made("last_seen", time="at", absent_after="10 minutes", forget_after=forget_after)
    assert [told.status for told in tested.batch([row(0), row(None)], watermark=moment(0))] == ["seen"]
    assert [told.status for told in tested.advance(watermark=moment(10))] == ["absent"]
    assert timers(tested) == ([70] if forget_after else [])
    assert tested.advance(watermark=moment(80)) == []
    assert (tested.state("away") == {}) == (forget_after is not None)
    assert [told.status for told in tested.batch([row(100)], watermark=moment(81))] == [status]
    assert timers(tested) == [110]


def test_alerts_alone():
    tested = made("last_seen", clock="processing_time", absent_after="10 minutes", alerts_only=True)
    told = tested.batch([row(0, 1)], processing_time=moment(0))
    told += tested.batch([row(0, 2)], processing_time=moment(9))
    told += tested.advance(processing_time=moment(19))
    told += tested.batch([row(None, 3)], processing_time=moment(50))
    assert [(one.status, one.value, one.status_at, one.away_since) for one in told] == [
        ("absent", 2, moment(19), moment(9)),
        ("returned", 3, moment(50), moment(9)),
    ]


def test_rows_of_any_type_come_back_from_state():
    rows = (
        StructType().add("key", StringType()).add("wait", DayTimeIntervalType()).add("more", MAP).add("n", LongType())
    )
    spec = READY_MADE["top_n"].model_validate({"n": 1, "by": "n"})
    tested = ProcessorTester(spec.processor(rows, ["key"]), key=["key"])
    given = {"key": "a", "wait": timedelta(hours=1), "more": [("then", None)], "n": 2}
    (first,) = tested.batch([given])
    assert tested.batch([given | {"n": 1}]) == []  # what is kept equals what came
    assert first.asDict() == given | {"rank": 1}
