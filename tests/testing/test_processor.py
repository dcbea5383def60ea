"""A processor is tried without a stream."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StructField, StructType

from penstock.testing import ProcessorTester
from penstock.testing.state import WrongUse, width

MINUTE = 60_000


class Visits(StatefulProcessor):
    """Counts the pages of a visit; a minute of silence ends it."""

    def __init__(self, gap_ms: int = MINUTE) -> None:
        self.gap_ms = gap_ms

    def init(self, handle):
        self.handle = handle
        self.pages = handle.getMapState("pages", "page STRING", "n LONG")
        self.times = handle.getListState("times", "at LONG")
        self.last = handle.getValueState("last", StructType([StructField("at", LongType())]))

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            before = self.pages.getValue((row.page,))
            self.pages.updateValue((row.page,), (before[0] + 1 if before else 1,))
            self.times.appendValue((row.at,))
            if self.last.exists():
                self.handle.deleteTimer(self.last.get()[0] + self.gap_ms)
            self.last.update((row.at,))
            self.handle.registerTimer(row.at + self.gap_ms)
        return iter([])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        times = [at for (at,) in self.times.get()]
        yield Row(user=key[0], pages=len(list(self.pages.keys())), first=min(times), last=max(times))
        for state in (self.pages, self.times, self.last):
            state.clear()

    def handleInitialState(self, key, initialState, timerValues):
        self.times.appendValue((initialState.at,))


def visit(user: str, page: str, at: int) -> dict[str, object]:
    return {"user": user, "page": page, "at": at}


@pytest.fixture
def visits() -> ProcessorTester:
    return ProcessorTester(Visits, key=["user"], time="event_time", options={"gap_ms": MINUTE})


def test_state_is_kept_per_key_and_timers_go_off_by_the_watermark(visits):
    assert visits.feed("ann", [visit("ann", "home", 1_000), visit("ann", "cart", 2_000)]) == []
    assert visits.feed("bob", [visit("bob", "home", 5_000)], watermark=3_000) == []
    assert visits.state("pages", "ann") == {("home",): (1,), ("cart",): (1,)}
    assert visits.state("last") == {("ann",): (2_000,), ("bob",): (5_000,)}
    assert visits.timers("ann") == [2_000 + MINUTE]
    assert visits.advance(watermark=2_000 + MINUTE) == [Row(user="ann", pages=2, first=1_000, last=2_000)]
    assert visits.state("times") == {("bob",): [(5_000,)]}
    assert visits.timers("ann") == []


def test_a_batch_of_several_keys_is_taken_key_by_key_and_its_timers_go_off_in_it(visits):
    rows = [visit("bob", "home", 2_000), visit("ann", "home", 1_000), visit("bob", "cart", 3_000)]
    assert [row.user for row in visits.batch(rows, watermark=10 * MINUTE)] == ["ann", "bob"]
    assert visits.state("last") == {}


def test_state_outlives_a_restart_and_the_watermark_never_goes_back(visits):
    visits.feed("ann", [visit("ann", "home", 1_000)], watermark=50_000)
    visits.restart()
    assert visits.state("last", "ann") == (1_000,)
    visits.feed("ann", [visit("ann", "home", 2_000)], watermark=0)
    assert len(visits.advance(watermark=datetime(1970, 1, 1, 0, 1, 2, tzinfo=UTC))) == 1


def test_initial_state_is_there_before_the_first_rows(visits):
    visits.initial("ann", {"at": 7})
    assert visits.state("times", "ann") == [(7,)]


class Recent(StatefulProcessor):
    """Remembers for a second, and greets again after an hour."""

    def init(self, handle):
        self.handle = handle
        self.seen = handle.getValueState("seen", "n LONG", 1_000)
        self.pages = handle.getListState("pages", "n LONG", 1_000)
        self.words = handle.getMapState("words", "w STRING", "n LONG", 1_000)

    def handleInputRows(self, key, rows, timerValues):
        before = self.seen.get()
        for row in rows:
            self.seen.update((row.n,))
            self.pages.appendValue((row.n,))
            self.words.updateValue(("w",), (row.n,))
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 3_600_000)
        yield Row(before=before[0] if before else None, pages=[n for (n,) in self.pages.get()])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield Row(before=None, pages=[expiredTimerInfo.getExpiryTimeInMs()])


def test_ttl_and_timers_go_by_the_clock_that_the_test_sets():
    tester = ProcessorTester(Recent, time="processing_time", now=10_000)
    assert tester.feed("k", [{"n": 1}]) == [Row(before=None, pages=[1])]
    assert tester.feed("k", [{"n": 2}], processing_time=10_900) == [Row(before=1, pages=[1, 2])]
    # The first item is a second old by now; each write gives the value itself a new second.
    assert tester.feed("k", [{"n": 3}], processing_time=11_100) == [Row(before=2, pages=[2, 3])]
    tester.advance(processing_time=20_000)
    assert [tester.state(name, "k") for name in ("seen", "pages", "words")] == [None, [], {}]
    assert tester.advance(processing_time=10_000 + 3_600_000) == [Row(before=None, pages=[3_610_000])]


class Frames(StatefulProcessor):
    def init(self, handle):
        self.total = handle.getValueState("total", "n LONG")

    def handleInputRows(self, key, rows, timerValues):
        n = (self.total.get() or (0,))[0] + sum(len(frame) for frame in rows)
        self.total.update((n,))
        yield pd.DataFrame({"word": [key[0]], "n": [n]})


def test_a_processor_of_pandas_gets_and_gives_frames():
    tester = ProcessorTester(Frames, key=["word"], rows="pandas")
    tester.batch([{"word": "dog"}, {"word": "dog"}])
    assert tester.batch([{"word": "dog"}, {"word": "cat"}]) == [Row(word="cat", n=1), Row(word="dog", n=3)]


class Careless(StatefulProcessor):
    def __init__(self, act):
        self.act = act

    def init(self, handle):
        self.handle = handle
        self.pair = handle.getValueState("pair", "a LONG, b ARRAY<STRUCT<x: INT, y: DECIMAL(3,1)>>")
        self.items = handle.getListState("items", "n LONG")
        if self.act == "timer in init":
            handle.registerTimer(1)
        if self.act == "twice":
            handle.getListState("pair", "n LONG")
        if self.act == "ttl":
            handle.getValueState("brief", "n LONG", 1_000)

    def handleInputRows(self, key, rows, timerValues):
        match self.act:
            case "too few":
                self.pair.update((1,))
            case "none":
                self.pair.update(None)
            case "empty":
                self.items.put([])
            case "late":
                self.handle.getValueState("late", "n LONG")
            case "timer":
                self.handle.registerTimer(1)
        return iter([])


@pytest.mark.parametrize(
    ("act", "time", "said"),
    [
        ("too few", "none", "2 columns, and got 1"),
        ("none", "none", "cannot hold None"),
        ("empty", "none", "empty list"),
        ("late", "none", "in `init` only"),
        ("timer", "none", "timers need"),
        ("timer in init", "event_time", "belong to a key"),
        ("ttl", "event_time", "has a TTL"),
        ("twice", "none", "declared twice"),
    ],
)
def test_what_spark_refuses_is_refused(act, time, said):
    with pytest.raises(WrongUse, match=said):
        ProcessorTester(Careless, time=time, options={"act": act}).feed("k", [{"n": 1}])


def test_state_is_not_what_the_processor_goes_on_to_change():
    class Sharing(Frames):
        def handleInputRows(self, key, rows, timerValues):
            shared = [1]
            self.total.update((shared,))
            shared.append(2)
            self.total.get()[0].append(3)
            return iter([])

    tester = ProcessorTester(Sharing)
    tester.feed("k", [{"n": 1}])
    assert tester.state("total", "k") == ([1],)


def test_columns_are_counted_in_ddl_too():
    assert width("a LONG") == 1
    assert width("a MAP<STRING, INT>, b DECIMAL(3,1), c STRUCT<x: INT, y: INT>") == 3
