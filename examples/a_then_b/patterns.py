"""One event that another should follow, as a processor of PySpark's own."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class FollowedBy(StatefulProcessor):
    """Per key: does `then` come within so many minutes of `first`?

    `followed` is told at once, also when the two come in the wrong order. `missed` is told when the watermark says that
    nothing can come in time any more. A `then` without a `first` is told as `alone`. What was sent twice counts once.
    """

    def __init__(self, first: str, then: str, within_minutes: int) -> None:
        self.first, self.then, self.within_ms = first, then, within_minutes * 60_000

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.seen = handle.getValueState("seen", "first_ms LONG, then_ms LONG, told BOOLEAN")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        first, then, told = before = self.seen.get() if self.seen.exists() else (None, None, False)
        for row in rows:
            if row.kind == self.first:
                first = earlier(first, milliseconds(row.at))
            elif row.kind == self.then:
                then = earlier(then, milliseconds(row.at))
        if first is None and then is None:
            return
        self.move_timer(self.due(*before[:2]), self.due(first, then))
        followed = first is not None and then is not None and first <= then <= first + self.within_ms
        self.seen.update((first, then, followed))
        if followed and not told:
            yield result(key, "followed", first, then)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[Row]:
        first, then, told = self.seen.get()
        self.seen.clear()
        if not told:
            yield result(key, "alone" if first is None else "missed", first, then)

    def due(self, first: int | None, then: int | None) -> int | None:
        """From when on nothing can change any more."""
        if first is not None:
            return first + self.within_ms
        return then

    def move_timer(self, before: int | None, after: int) -> None:
        if before is not None and before != after:
            self.handle.deleteTimer(before)
        self.handle.registerTimer(after)


def result(key: tuple, outcome: str, first: int | None, then: int | None) -> Row:
    return Row(order_id=key[0], outcome=outcome, first_at=moment(first), then_at=moment(then))


def earlier(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


def milliseconds(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
