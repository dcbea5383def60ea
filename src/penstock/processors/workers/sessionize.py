"""Sessions per key, in the workers."""

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

from penstock.processors.workers import aggregates
from penstock.processors.workers.stretches import Stretch, closed_by, first_end, merged_stretches
from penstock.processors.workers.values import OneTimer, Rows, to_microseconds, to_time, unpacked

Named = tuple[str, str, str, DataType]
"""An aggregate: its name, what is made, of which column, and the type of the result."""


class SessionizeProcessor(StatefulProcessor):
    """Keeps the open sessions of a key in one list. A timer closes those that the watermark has passed."""

    def __init__(self, names: tuple[str, ...], time: str, gap: int, made: list[Named]) -> None:
        self._row = Row(*names)
        self._time, self._gap = time, gap
        self._made = [(kind, of) for _, kind, of, _ in made]
        self._kinds = [kind for _, kind, _, _ in made]
        self._types = [result for _, _, _, result in made]
        fields = [StructField(name, LongType()) for name in ("start", "end", "events")]
        for name, kind, _, result in made:
            fields.append(StructField(f"value_{name}", result))
            if kind in ("first", "last"):
                fields.append(StructField(f"time_{name}", LongType()))
        self._state = StructType(fields)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._sessions = handle.getListState("sessions", self._state)
        self._timer = OneTimer(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Rows:
        known = self._known()
        came: list[Stretch] = []
        untimed: list[Stretch] = []
        for row in rows:
            time = None if row[self._time] is None else to_microseconds(row[self._time])
            found = untimed if time is None else came
            found.append(Stretch(time or 0, time or 0, aggregates.of_row(row, time or 0, self._made)))
        self._keep(known, merged_stretches([*known, *came], self._gap, self._joined))
        for one in merged_stretches(untimed, self._gap, self._joined):
            yield self._row(*key, None, None, *aggregates.shown(one.kept, self._kinds))

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Rows:
        known = self._known()
        closed, waiting = closed_by(known, self._gap, timerValues.getCurrentWatermarkInMs() * 1_000)
        self._keep(known, waiting)
        for one in closed:
            yield self._row(*key, to_time(one.start), to_time(one.end), *aggregates.shown(one.kept, self._kinds))

    def _joined(self, one: Stretch, other: Stretch) -> aggregates.Kept:
        return aggregates.joined(one.kept, other.kept, self._kinds)

    def _known(self) -> list[Stretch]:
        return [self._read(state) for state in self._sessions.get()]

    def _keep(self, before: list[Stretch], after: list[Stretch]) -> None:
        if after:
            self._sessions.put([self._written(one) for one in after])
        elif before:
            self._sessions.clear()
        self._timer.move(first_end(before, self._gap), first_end(after, self._gap))

    def _read(self, state: tuple[Any, ...]) -> Stretch:
        start, end, events, *rest = state
        values = iter(rest)
        kept: list[Any] = [events]
        for kind, result in zip(self._kinds, self._types, strict=True):
            value = unpacked(next(values), result)
            if kind in ("first", "last"):
                time = next(values)
                value = None if time is None else (time, value)
            kept.append(value)
        return Stretch(start, end, tuple(kept))

    def _written(self, one: Stretch) -> tuple[Any, ...]:
        events, *values = one.kept
        state: list[Any] = [one.start, one.end, events]
        for kind, value in zip(self._kinds, values, strict=True):
            if kind in ("first", "last"):
                time, value = value or (None, None)  # noqa: PLW2901
                state += [value, time]
            else:
                state.append(value)
        return tuple(state)
