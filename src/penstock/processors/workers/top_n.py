"""The greatest rows per key, in the workers."""

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
from pyspark.sql.types import StructType

from penstock.processors.workers.ranking import RankedRow, changed_places, ranked, still_inside, worth_keeping
from penstock.processors.workers.values import (
    Backwards,
    OneTimer,
    Rows,
    from_state,
    in_order,
    state_fields,
    to_microseconds,
    to_state,
)


class TopNProcessor(StatefulProcessor):
    """Keeps the rows of a key that hold a place, or may get one when others have left."""

    def __init__(
        self,
        names: tuple[str, ...],
        rows: StructType,
        keys: int,
        n: int,
        by: str,
        least_first: bool,
        time: str | None,
        span: int | None,
    ) -> None:
        self._row, self._rows = Row(*names), rows
        self._others = names[keys + 1 :]  # behind the key and the rank
        self._n, self._by, self._least_first, self._time, self._span = n, by, least_first, time, span

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._candidates = handle.getListState("candidates", StructType(state_fields(self._rows)))
        self._timer = OneTimer(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Rows:
        known = self._known()
        came = [self._entry(row.asDict()) for row in rows if self._counts(row)]
        yield from self._changed(key, known, [*known, *came], timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Rows:
        known = self._known()
        yield from self._changed(key, known, known, timerValues)

    def _changed(self, key: Any, before: list[RankedRow], now: list[RankedRow], timer_values: TimerValues) -> Rows:
        inside = still_inside(now, self._span, timer_values.getCurrentWatermarkInMs() * 1_000)
        after = worth_keeping(inside, self._n)
        self._keep(before, after)
        for place, entry in changed_places(ranked(before, self._n), ranked(after, self._n)):
            yield self._row(*key, place, *(entry and entry.row[name] for name in self._others))

    def _counts(self, row: Any) -> bool:
        return row[self._by] is not None and (self._time is None or row[self._time] is not None)

    def _entry(self, row: dict[str, Any]) -> RankedRow:
        time = to_microseconds(row[self._time]) if self._time else None
        value = in_order(row[self._by])
        # The text of the row comes last, so that the order in which rows come never decides.
        order = (Backwards(value) if self._least_first else value, time or 0, repr(sorted(row.items())))
        return RankedRow(order, time, row)

    def _known(self) -> list[RankedRow]:
        return [self._entry(from_state(state, self._rows)) for state in self._candidates.get()]

    def _keep(self, before: list[RankedRow], after: list[RankedRow]) -> None:
        if after:
            self._candidates.put([to_state(entry.row, self._rows) for entry in after])
        elif before:
            self._candidates.clear()
        if self._span is not None:
            self._timer.move(self._first_leaves(before), self._first_leaves(after))

    def _first_leaves(self, entries: list[RankedRow]) -> int | None:
        assert self._span is not None  # noqa: S101 - for the type checker
        return min((entry.time + self._span for entry in entries if entry.time is not None), default=None)
