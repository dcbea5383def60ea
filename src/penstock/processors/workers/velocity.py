"""Counts and sums over sliding spans of time, in the workers."""

# ruff: noqa: N802, N803 - Spark gives the methods their names

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import DataType, LongType, StructField, StructType

from penstock.processors.workers.spans import Event, features, still_needed
from penstock.processors.workers.values import OneTimer, Rows, to_microseconds


class VelocityProcessor(StatefulProcessor):
    """Keeps time and sums of the recent rows of a key. A timer forgets a key that has gone quiet."""

    def __init__(self, names: tuple[str, ...], time: str, spans: list[int], sums: list[tuple[str, DataType]]) -> None:
        self._row = Row(*names)
        self._time, self._spans, self._longest = time, spans, max(spans)
        self._sums = [name for name, _ in sums]
        self._nothing = [None] * (len(spans) * (1 + len(sums)))
        self._state = StructType(
            [StructField("time", LongType()), *(StructField(f"value_{name}", kind) for name, kind in sums)]
        )

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._recent = handle.getListState("recent", self._state)
        self._timer = OneTimer(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Rows:
        known = self._known()
        timed: list[tuple[int, Any]] = []
        for row in rows:
            if row[self._time] is None:
                yield self._row(*row, *self._nothing)
            else:
                timed.append((to_microseconds(row[self._time]), row))
        came: list[Event] = [(time, *(row[name] for name in self._sums)) for time, row in timed]
        events = sorted([*known, *came], key=lambda event: event[0])
        self._keep(known, events, timerValues)
        for time, row in timed:
            yield self._row(*row, *features(events, time, self._spans))

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Rows:
        known = self._known()
        self._keep(known, known, timerValues)
        return iter(())

    def _known(self) -> list[Event]:
        return [tuple(state) for state in self._recent.get()]

    def _keep(self, before: list[Event], events: list[Event], timer_values: TimerValues) -> None:
        after = still_needed(events, self._longest, timer_values.getCurrentWatermarkInMs() * 1_000)
        if after:
            self._recent.put(after)
        elif before:
            self._recent.clear()
        self._timer.move(self._quiet_at(before), self._quiet_at(after))

    def _quiet_at(self, events: list[Event]) -> int | None:
        return max(event[0] for event in events) + self._longest if events else None
