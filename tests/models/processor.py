"""The step that `keyed.py` is the model of: PySpark's own processor, in the workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

IDLE_MINUTES = 10


class Visits(StatefulProcessor):
    """Counts and sums the rows of a key until it has been idle."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._visit = handle.getValueState("visit", "rows INT, total INT, until BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        count, total, until = self._visit.get() if self._visit.exists() else (0, 0, None)
        if until is not None:
            self._handle.deleteTimer(until)
        for row in rows:
            count, total = count + 1, total + row.value
            until = max(until or 0, int(row.event_time.timestamp() * 1_000) + IDLE_MINUTES * 60_000)
        self._visit.update((count, total, until))
        self._handle.registerTimer(until)
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        count, total, _ = self._visit.get()
        self._visit.clear()
        yield Row(key=key[0], rows=count, total=total)

    def close(self) -> None:
        pass


def visits(events: DataFrame) -> DataFrame:
    return events.groupBy("key").transformWithState(Visits(), "key STRING, rows INT, total INT", "Append", "EventTime")


def dropped(events: DataFrame) -> DataFrame:
    return events.dropDuplicates(["key", "event_time", "value"]).select("key", "minute", "value")


def dropped_within(events: DataFrame) -> DataFrame:
    return events.dropDuplicatesWithinWatermark(["key", "value"]).select("key", "minute", "value")
