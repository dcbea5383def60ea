"""Counts and sums over sliding spans of time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from penstock.notation.durations import to_milliseconds
from penstock.processors.ready_made import (
    NUMBERS,
    ReadyMade,
    Span,
    event_time_column,
    microseconds,
    plain,
    require_new,
    require_type,
    summed,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType


class Velocity(ReadyMade):
    """How often and how much, per key, in the last minute, hour or any span: each row with features as of its time.

    A row counts all rows of its key within the span that ends with its own time, itself among them, as far as they
    have come with its batch or before. A row that comes out of order counts what was there at its time; rows that came
    out before it are not told again. Rows beyond the longest span behind the watermark are forgotten. A row without a
    time comes out with NULL features.
    """

    time: str = Field(description="The event-time column, of type TIMESTAMP; it carries the watermark.")
    spans: tuple[Span, ...] = Field(description="How far back to look, such as `[1 minute, 1 hour]`.", min_length=1)
    sums: tuple[str, ...] = Field((), description="The columns of numbers to sum up. NULLs are passed over.")

    example: ClassVar[str] = """\
process:
  of: payments
  key: [card_id]
  with: velocity
  options: {time: paid_at, spans: [1 minute, 1 hour], sums: [amount]}"""

    @field_validator("spans", mode="after")
    @classmethod
    def _each_once(cls, spans: tuple[str, ...]) -> tuple[str, ...]:
        if len({to_milliseconds(span) for span in spans}) < len(spans):
            raise ValueError("names a span twice")
        return spans

    def output(self, rows: StructType, key: Sequence[str]) -> StructType:
        from pyspark.sql.types import LongType, StructField, StructType

        event_time_column(rows, self.time)
        kinds = {
            name: summed(require_type(rows, name, NUMBERS, "a number", "sums", place))
            for place, name in enumerate(self.sums)
        }
        added = []
        for span in self.spans:
            added.append(StructField(f"count_{named(span)}", LongType()))
            added += [StructField(f"sum_{name}_{named(span)}", kind) for name, kind in kinds.items()]
        require_new((field.name for field in added), rows.names)
        return StructType([*plain(rows), *added])

    def _made(self, rows: StructType, key: Sequence[str]) -> StatefulProcessor:
        from penstock.processors.workers.velocity import VelocityProcessor

        output = self.output(rows, key)
        sums = [(name, summed(rows[name].dataType)) for name in self.sums]
        return VelocityProcessor(tuple(output.names), self.time, [microseconds(span) for span in self.spans], sums)


def named(span: str) -> str:
    """A span as part of a column's name: `10 minutes` → `10_minutes`."""
    return re.sub(r"\W+", "_", span.strip().lower())
