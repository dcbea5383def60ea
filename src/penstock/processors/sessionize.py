"""Sessions per key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from penstock.processors.ready_made import (
    NUMBERS,
    ReadyMade,
    Span,
    event_time_column,
    key_fields,
    microseconds,
    ordered_column,
    require_new,
    require_type,
    summed,
    type_of_column,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import DataType, StructType

_AGGREGATE = re.compile(r"^\s*(first|last|min|max|sum|count)\s*\(\s*(\w+)\s*\)\s*$", re.IGNORECASE)


def _checked(text: str) -> str:
    if not _AGGREGATE.match(text):
        raise PydanticCustomError("aggregate", "should be one of first, last, min, max, sum, count of a column")
    return text


Aggregate = Annotated[str, AfterValidator(_checked)]
"""`sum(amount)`: what is made of a column."""


class Sessionize(ReadyMade):
    """Sessions per key: rows that follow one another within a gap. One row for each session, once it is closed.

    A session is closed when the watermark has passed its last row by the gap. Until then a row that comes out of order
    lengthens it, or joins two. It does not matter in which order rows come. A row without a time belongs to no session:
    it comes out at once, with NULL for start and end.
    """

    time: str = Field(description="The event-time column, of type TIMESTAMP; it carries the watermark.")
    gap: Span = Field(description="A row that comes so long after the one before begins a session.")
    aggregates: dict[str, Aggregate] = Field(
        default_factory=dict,
        description="Further columns of a session, by name: `first`, `last`, `min`, `max`, `sum` or `count` of a"
        " column, such as `sum(amount)`. NULLs are passed over.",
    )

    example: ClassVar[str] = """\
process:
  of: clicks
  key: [user_id]
  with: sessionize
  options: {time: clicked_at, gap: 30 minutes, aggregates: {landing: first(page), spent: sum(amount)}}"""

    def output(self, rows: StructType, key: Sequence[str]) -> StructType:
        from pyspark.sql.types import LongType, StructField, StructType, TimestampType

        event_time_column(rows, self.time)
        fixed = [StructField("session_start", TimestampType()), StructField("session_end", TimestampType())]
        fixed.append(StructField("events", LongType()))
        keys = key_fields(rows, key)
        taken = [*key, *(field.name for field in fixed)]
        require_new((field.name for field in fixed), key, "time")
        for name in self.aggregates:
            require_new([name], taken, "aggregates", name)
            taken.append(name)
        made = [StructField(name, self._type(rows, name)) for name in self.aggregates]
        return StructType([*keys, *fixed, *made])

    def _made(self, rows: StructType, key: Sequence[str]) -> StatefulProcessor:
        from penstock.processors.workers.sessionize import SessionizeProcessor

        output = self.output(rows, key)
        aggregates = [(name, *self._parts(name), output[name].dataType) for name in self.aggregates]
        return SessionizeProcessor(tuple(output.names), self.time, microseconds(self.gap), aggregates)

    def _parts(self, name: str) -> tuple[str, str]:
        """What is made of which column."""
        found = _AGGREGATE.match(self.aggregates[name])
        assert found  # noqa: S101 - for the type checker: it was validated
        return found[1].lower(), found[2]

    def _type(self, rows: StructType, name: str) -> DataType:
        from pyspark.sql.types import LongType

        kind, of = self._parts(name)
        match kind:
            case "count":
                type_of_column(rows, of, "aggregates", name)
                return LongType()
            case "sum":
                return summed(require_type(rows, of, NUMBERS, "a number", "aggregates", name))
            case _:
                return ordered_column(rows, of, "aggregates", name)
