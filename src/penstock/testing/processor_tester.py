"""Tries a stateful processor without a stream, a JVM or a clock: the test says what time it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from penstock.testing.state import Clock, Key, StateHandle

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

Moment = datetime | int
"""A time, or milliseconds since 1970. A `datetime` without a zone is in UTC, as Penstock's sessions are."""


class ProcessorTester:
    """Runs a user's `StatefulProcessor` batch by batch, in memory, as Spark would.

    In each batch the processor first gets the rows, key by key; then the timers that are due go off, earliest first;
    then state whose TTL is over is removed. Time stands still until the test moves it. Rows that are late are not
    dropped: in a stream they would not reach the processor.
    """

    def __init__(
        self,
        processor: type[StatefulProcessor] | StatefulProcessor,
        *,
        key: Sequence[str] = (),
        time: Literal["none", "processing_time", "event_time"] = "none",
        options: Mapping[str, Any] | None = None,
        rows: Literal["row", "pandas"] = "row",
        now: Moment = 0,
    ) -> None:
        self._processor = processor(**(options or {})) if isinstance(processor, type) else processor
        self._key_columns = tuple(key)
        self._in_pandas = rows == "pandas"
        self._clock = Clock(time, processing_ms=milliseconds(now))
        self._handle = StateHandle(self._clock)
        self._begin()

    def feed(
        self,
        key: Any,
        rows: Iterable[Any],
        *,
        watermark: Moment | None = None,
        processing_time: Moment | None = None,
    ) -> list[Row]:
        """One batch with rows of one key: what the processor gives for them, and for the timers that go off."""
        return self._batch({_as_key(key): list(rows)}, watermark, processing_time)

    def batch(
        self, rows: Iterable[Any], *, watermark: Moment | None = None, processing_time: Moment | None = None
    ) -> list[Row]:
        """One batch with rows of several keys, grouped by the columns of `key`."""
        grouped: dict[Key, list[Any]] = {}
        for row in map(_as_row, rows):
            grouped.setdefault(tuple(row[column] for column in self._key_columns), []).append(row)
        return self._batch(grouped, watermark, processing_time)

    def advance(self, *, watermark: Moment | None = None, processing_time: Moment | None = None) -> list[Row]:
        """One batch without rows: time moves on, and timers go off."""
        return self._batch({}, watermark, processing_time)

    def initial(self, key: Any, *rows: Any) -> None:
        """Gives a key its initial state, as in the first batch of a new checkpoint."""
        self._clock.key = _as_key(key)
        for row in rows:
            given = _as_frame([row]) if self._in_pandas else _as_row(row)
            self._processor.handleInitialState(self._clock.key, given, self._timer_values())

    def state(self, name: str, key: Any = None) -> Any:
        """What a state variable holds: for one key, or for all that have some.

        Of a value the tuple or None, of a list its tuples, of a map its tuples by their own.
        """
        variable = self._handle.variables[name]
        if key is not None:
            return variable.of(_as_key(key))
        found = {one: variable.of(one) for one in (*variable.kept, *variable.mapped)}
        return {one: value for one, value in found.items() if value}

    def timers(self, key: Any) -> list[int]:
        """When the timers of a key go off, in milliseconds."""
        return sorted(expiry for expiry, owner in self._handle.timers if owner == _as_key(key))

    def restart(self) -> None:
        """Ends the processor and begins anew on the same state, as a query does that is started again."""
        self._clock.key = None
        self._processor.close()
        self._begin()

    def _begin(self) -> None:
        self._handle.initialising = True
        self._handle.declared.clear()
        try:
            self._processor.init(self._handle)  # type: ignore[arg-type]
        finally:
            self._handle.initialising = False

    def _batch(self, rows: Mapping[Key, list[Any]], watermark: Moment | None, now: Moment | None) -> list[Row]:
        self._move(watermark, now)
        given: list[Any] = []
        for key in sorted(rows, key=_order):
            self._clock.key = key
            given += self._processor.handleInputRows(key, self._as_processor_takes(rows[key]), self._timer_values())
        given += self._expired()
        for variable in self._handle.variables.values():
            variable.expire()
        return list(self._as_rows(given))

    def _expired(self) -> Iterator[Any]:
        from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo

        if self._clock.time == "none":
            return
        # A timer that is set while others go off waits for the next batch.
        due = sorted((one for one in self._handle.timers if one[0] <= self._clock.expires_ms), key=_due_order)
        for expiry, key in due:
            self._clock.key = key
            yield from self._processor.handleExpiredTimer(key, self._timer_values(), ExpiredTimerInfo(expiry))
            self._handle.timers.discard((expiry, key))

    def _move(self, watermark: Moment | None, now: Moment | None) -> None:
        if watermark is not None:
            self._clock.watermark_ms = max(self._clock.watermark_ms, milliseconds(watermark))  # it never goes back
        if now is not None:
            self._clock.processing_ms = milliseconds(now)

    def _timer_values(self) -> Any:
        from pyspark.sql.streaming.stateful_processor import TimerValues

        time = self._clock.time
        return TimerValues(
            -1 if time == "none" else self._clock.processing_ms,
            self._clock.watermark_ms if time == "event_time" else -1,
        )

    def _as_processor_takes(self, rows: list[Any]) -> Iterator[Any]:
        return iter([_as_frame(rows)]) if self._in_pandas else map(_as_row, rows)

    def _as_rows(self, given: list[Any]) -> Iterator[Row]:
        for one in given:
            if self._in_pandas:
                yield from (_as_row(record) for record in one.to_dict("records"))
            else:
                yield one


def milliseconds(moment: Moment) -> int:
    if isinstance(moment, int):
        return moment
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


def _as_key(key: Any) -> Key:
    return tuple(key) if isinstance(key, tuple | list) else (key,)


def _as_row(row: Any) -> Row:
    from pyspark.sql import Row

    return Row(**row) if isinstance(row, Mapping) else row


def _as_frame(rows: list[Any]) -> Any:
    import pandas as pd

    return pd.DataFrame([row if isinstance(row, Mapping) else row.asDict() for row in rows])


def _order(key: Key) -> tuple[tuple[bool, Any], ...]:
    """The order in which Spark takes keys: NULL first."""
    return tuple((part is not None, part) for part in key)


def _due_order(timer: tuple[int, Key]) -> tuple[Any, ...]:
    return timer[0], _order(timer[1])
