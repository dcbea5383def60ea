"""What every ready-made processor has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator

from penstock.notation.durations import Duration, to_milliseconds
from penstock.problems import Fault, did_you_mean
from penstock.spec import Part

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import DataType, StructField, StructType

TimeMode = Literal["none", "processing_time", "event_time"]

OPTIONS = ("process", "options")
"""Where the options stand in a step."""
NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_WATERMARK = "spark.watermarkDelayMs"
"""What Spark writes into the metadata of an event-time column."""
_ORDERED = (*NUMBERS, "string", "varchar", "char", "boolean", "date", "timestamp", "timestamp_ntz", "binary")


class ReadyMade(Part):
    """The options of a ready-made processor. They make the processor, and know the columns that it gives.

    Its `example` is the whole step.
    """

    @property
    def time_mode(self) -> TimeMode:
        """What its timers go by."""
        return "event_time"

    def output(self, rows: StructType, key: Sequence[str]) -> StructType:
        """The columns that it gives for such rows, grouped by `key`. Raises Fault."""
        raise NotImplementedError

    def processor(self, rows: StructType, key: Sequence[str]) -> StatefulProcessor:
        """The processor itself. Raises Fault."""
        from pyspark import cloudpickle

        from penstock.processors import workers

        # Workers on other machines have the project's modules, and need not have this package.
        cloudpickle.register_pickle_by_value(workers)  # type: ignore[no-untyped-call]
        return self._made(rows, key)

    def _made(self, rows: StructType, key: Sequence[str]) -> StatefulProcessor:
        raise NotImplementedError


def _not_empty(text: str) -> str:
    if to_milliseconds(text) == 0:
        raise ValueError("is no time at all")
    return text


Span = Annotated[Duration, AfterValidator(_not_empty)]
"""A duration that is longer than nothing."""


def microseconds(span: str) -> int:
    return to_milliseconds(span) * 1_000


def plain(rows: StructType) -> StructType:
    """The columns with name and type alone: a watermark that is noted on one ends at a processor."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, field.dataType) for field in rows])


def key_fields(rows: StructType, key: Sequence[str]) -> list[StructField]:
    """The columns that rows are grouped by. They are there; their case does not matter, as it does not to Spark."""
    by_name = {field.name.lower(): field for field in plain(rows)}
    return [by_name[name.lower()] for name in key]


def type_of_column(rows: StructType, name: str, *keys: str | int) -> DataType:
    """The type of a column that the option at `keys` names. Raises Fault."""
    if name not in rows.names:
        message = f"its rows have no column `{name}`{did_you_mean(name, rows.names)}"
        raise Fault("READY001", message, f"name one of: {', '.join(rows.names)}", (*OPTIONS, *keys))
    return rows[name].dataType


def event_time_column(rows: StructType, name: str) -> None:
    """Raises Fault unless the column, which the option `time` names, is the one that carries the watermark."""
    time_column(rows, name)
    if _WATERMARK not in rows[name].metadata:
        message = f"the column `{name}` carries no watermark, so nothing would ever be over"
        fix = f"set `watermark: {{column: {name}, delay: 10 minutes}}` on the source, or on a step before"
        raise Fault("READY006", message, fix, (*OPTIONS, "time"))


def time_column(rows: StructType, name: str) -> None:
    """Raises Fault unless the column, which the option `time` names, is a TIMESTAMP."""
    require_type(rows, name, ("timestamp",), "a TIMESTAMP", "time")


def ordered_column(rows: StructType, name: str, *keys: str | int) -> DataType:
    """The type of a column whose values can be told apart by their order. Raises Fault."""
    return require_type(rows, name, _ORDERED, "a number, a text or a time", *keys)


def require_type(rows: StructType, name: str, types: Collection[str], wanted: str, *keys: str | int) -> DataType:
    found = type_of_column(rows, name, *keys)
    if found.typeName() not in types:
        message = f"the column `{name}` is {found.simpleString().upper()}, and must be {wanted}"
        raise Fault("READY002", message, "name another column, or cast it in a step before", (*OPTIONS, *keys))
    return found


def require_new(names: Iterable[str], taken: Iterable[str], *keys: str | int) -> None:
    """Raises Fault if a column that the processor adds is there already."""
    known = {name.lower() for name in taken}
    for name in names:
        if name.lower() in known:
            message = f"the processor adds a column `{name}`, and there is one already"
            raise Fault("READY003", message, "rename one of the two", (*OPTIONS, *keys))
        known.add(name.lower())


def summed(kind: DataType) -> DataType:
    """The type of a sum over such numbers, as Spark's SQL gives it."""
    from pyspark.sql.types import DecimalType, DoubleType, LongType

    if isinstance(kind, DecimalType):
        return DecimalType(min(38, kind.precision + 10), kind.scale)
    return DoubleType() if kind.typeName() in ("float", "double") else LongType()
