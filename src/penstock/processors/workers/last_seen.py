"""The last row per key, and who is missing, in the workers."""

# ruff: noqa: N802, N803 - Spark gives the methods their names

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import LongType, StructField, StructType

from penstock.processors.workers.presence import (
    Presence,
    Told,
    after_rows,
    after_time,
    forgotten_at,
    next_look,
)
from penstock.processors.workers.stretches import Stretch
from penstock.processors.workers.values import (
    OneTimer,
    Rows,
    from_state,
    state_fields,
    to_microseconds,
    to_state,
    to_time,
)

_NOTHING = Presence([], None)


class LastSeenProcessor(StatefulProcessor):
    """Keeps the last row of each stretch without an absence, and since when a key is away."""

    def __init__(
        self,
        names: tuple[str, ...],
        rows: StructType,
        time: str | None,
        by_clock: bool,
        absent_us: int,
        forget_us: int | None,
        alerts_only: bool,
    ) -> None:
        self._row, self._rows, self._time, self._by_clock = Row(*names), rows, time, by_clock
        self._absent_after, self._forget_after, self._alerts_only = absent_us, forget_us, alerts_only
        times = [StructField("start", LongType()), StructField("end", LongType())]
        self._state = StructType([*times, *state_fields(rows)])

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._stretches = handle.getListState("stretches", self._state)
        self._away = handle.getValueState("away", StructType([StructField("since", LongType())]))
        self._timer = OneTimer(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Rows:
        known = self._known()
        came = [(time, row) for row in rows if (time := self._time_of(row, timerValues)) is not None]
        now, told = after_rows(known, ((time, row.asDict()) for time, row in came), self._absent_after, self._newer)
        self._keep(known, now)
        yield from self._shown(told)

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Rows:
        known = self._known()
        clock = self._clock(timerValues)
        now, told = after_time(known, self._absent_after, clock)
        self._keep(known, self._remembered(now, clock))
        yield from self._shown(told)

    def _clock(self, timer_values: TimerValues) -> int:
        now = timer_values.getCurrentProcessingTimeInMs() if self._by_clock else timer_values.getCurrentWatermarkInMs()
        return now * 1_000

    def _time_of(self, row: Any, timer_values: TimerValues) -> int | None:
        if self._by_clock:
            return self._clock(timer_values)
        value = row[self._time]
        return None if value is None else to_microseconds(value)

    def _newer(self, one: Stretch, other: Stretch) -> dict[str, Any]:
        newest: dict[str, Any] = max(one, other, key=self._newness).kept
        return newest

    def _newness(self, one: Stretch) -> tuple[int, int, str]:
        # By the clock, all rows of a batch come at one time. The text of the row comes last, so that the order in which
        # they are handed over never decides.
        time = one.kept[self._time] if self._time else None
        return one.end, 0 if time is None else to_microseconds(time), repr(sorted(one.kept.items()))

    def _remembered(self, known: Presence, clock: int) -> Presence:
        if known.away_since is None or self._forget_after is None:
            return known
        over = forgotten_at(known.away_since, self._absent_after, self._forget_after) <= clock
        return _NOTHING if over else known

    def _known(self) -> Presence:
        kept = self._stretches.get()
        stretches = [Stretch(start, end, from_state(cells, self._rows)) for start, end, *cells in kept]
        away = self._away.get()
        return Presence(stretches, away[0] if away else None)

    def _keep(self, before: Presence, after: Presence) -> None:
        if after.stretches:
            self._stretches.put([(one.start, one.end, *to_state(one.kept, self._rows)) for one in after.stretches])
        elif before.stretches:
            self._stretches.clear()
        if after.away_since is not None:
            self._away.update((after.away_since,))
        elif before.away_since is not None:
            self._away.clear()
        looks = (next_look(one, self._absent_after, self._forget_after) for one in (before, after))
        self._timer.move(*looks)

    def _shown(self, told: Iterable[Told]) -> Rows:
        for one in told:
            if one.status == "seen" and self._alerts_only:
                continue
            values = (one.row[name] for name in self._rows.names)
            yield self._row(*values, one.status, to_time(one.at), to_time(one.away_since))
