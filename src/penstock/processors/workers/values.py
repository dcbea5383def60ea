"""Plain values, between rows, state and timers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
    from pyspark.sql.types import DataType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def to_time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


def in_order(value: Any) -> tuple[bool, Any]:
    """What to sort values by: NaN is greater than any number, as it is to Spark."""
    return (isinstance(value, float) and math.isnan(value), value)


def total(values: Iterable[Any]) -> Any:
    """The sum, 0 of none. It does not depend on the order, for floats neither."""
    numbers = list(values)
    return math.fsum(numbers) if any(isinstance(number, float) for number in numbers) else sum(numbers)


def to_state(value: Any, kind: DataType) -> Any:
    """A value of a row as state takes it: a map is a list of pairs in a row."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return tuple(to_state(value[field.name], field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return [to_state(item, kind.elementType) for item in value]
    if isinstance(kind, MapType):
        return {to_state(key, kind.keyType): to_state(item, kind.valueType) for key, item in dict(value).items()}
    return value


def from_state(value: Any, kind: DataType) -> Any:
    """A value of state as a row has it: Spark gives a time back without its zone, in that of the machine."""
    if value is None:
        return None
    if isinstance(kind, TimestampType):
        return value.astimezone(UTC)
    if isinstance(kind, StructType):
        return {field.name: from_state(item, field.dataType) for field, item in zip(kind, value, strict=True)}
    if isinstance(kind, ArrayType):
        return [from_state(item, kind.elementType) for item in value]
    if isinstance(kind, MapType):
        return [(from_state(key, kind.keyType), from_state(item, kind.valueType)) for key, item in value.items()]
    return value


class OneTimer:
    """The one timer that a key has, moved as needed."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle

    def move(self, before: int | None, after: int | None) -> None:
        """From one time to another, each in microseconds; None is no timer."""
        old, new = (None if time is None else -(-time // 1_000) for time in (before, after))
        if old == new:
            return
        if old is not None:
            self._handle.deleteTimer(old)
        if new is not None:
            self._handle.registerTimer(new)


@total_ordering
class Backwards:
    """A value that sorts the other way round."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and bool(self._value == other._value)

    def __lt__(self, other: Backwards) -> bool:
        return bool(other._value < self._value)

    __hash__ = None  # type: ignore[assignment] # values that only sort need none
