"""Plain values, between rows, state and timers."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.types import BinaryType, StructField, TimestampType

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
    from pyspark.sql.types import DataType, StructType

Rows = Iterator[Row]
"""What a processor gives."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PLAIN = frozenset(
    [
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "decimal",
        "string",
        "varchar",
        "char",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
        "binary",
    ]
)
"""The types that state keeps as they are."""


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


def state_fields(rows: StructType) -> list[StructField]:
    """The columns of rows, as state keeps them."""
    kept = [(field.name, field.dataType if _is_plain(field.dataType) else BinaryType()) for field in rows]
    return [StructField(f"value_{name}", kind) for name, kind in kept]


def to_state(row: Mapping[str, Any], rows: StructType) -> tuple[Any, ...]:
    """A row as state takes it. Arrays, maps and structs are bytes there: state has no place for a NULL inside them."""
    return tuple(_packed(row[field.name], field.dataType) for field in rows)


def from_state(cells: Iterable[Any], rows: StructType) -> dict[str, Any]:
    return {field.name: unpacked(cell, field.dataType) for field, cell in zip(rows, cells, strict=True)}


def unpacked(cell: Any, kind: DataType) -> Any:
    """A value of state as a row has it: Spark gives a time back without its zone, in that of the machine."""
    if cell is None:
        return None
    if isinstance(kind, TimestampType):
        return cell.astimezone(UTC)
    return cell if _is_plain(kind) else pickle.loads(cell)  # noqa: S301 - state is as trusted as the code


def _packed(value: Any, kind: DataType) -> Any:
    return value if value is None or _is_plain(kind) else pickle.dumps(value, protocol=5)


def _is_plain(kind: DataType) -> bool:
    return kind.typeName() in _PLAIN


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
