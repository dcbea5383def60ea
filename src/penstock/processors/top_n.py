"""The greatest rows per key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from penstock.processors.ready_made import (
    ReadyMade,
    Span,
    TimeMode,
    event_time_column,
    key_fields,
    microseconds,
    ordered_column,
    plain,
    require_new,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType


class TopN(ReadyMade):
    """The n greatest rows per key by a column, of all time or of a span: one row for each place that has changed.

    Places have the number `rank`, from 1. With a `span`, a row leaves the ranking when the watermark has passed its
    time by the span. A place that nobody holds any more comes out with NULL in all but key and rank. Of rows with the
    same value the later one ranks first. Rows without a value are passed over, and so are rows without a time where
    there is a `span`. Written with `write: upsert` by key and rank, the ranking stands in a table.
    """

    n: int = Field(description="How many places there are.", ge=1, le=1_000)
    by: str = Field(description="The column that decides: a number, a text or a time.")
    order: Literal["greatest", "least"] = Field("greatest", description="Which values come first.")
    span: Span | None = Field(None, description="How long a row counts, in event time; for ever if left out.")
    time: str | None = Field(None, description="The event-time column, of type TIMESTAMP; needed with `span`.")

    example: ClassVar[str] = """\
process:
  of: sales
  key: [shop]
  with: top_n
  options: {n: 3, by: amount, span: 1 hour, time: sold_at}"""

    @model_validator(mode="after")
    def _a_span_has_a_time(self) -> TopN:
        if (self.span is None) != (self.time is None):
            raise ValueError("`span` and `time` go together: give both, or neither")
        return self

    @property
    def time_mode(self) -> TimeMode:
        return "event_time" if self.span else "none"

    def output(self, rows: StructType, key: Sequence[str]) -> StructType:
        from pyspark.sql.types import IntegerType, StructField, StructType

        ordered_column(rows, self.by, "by")
        if self.time:
            event_time_column(rows, self.time)
        require_new(["rank"], rows.names)
        keys = key_fields(rows, key)
        others = [field for field in plain(rows) if field not in keys]
        return StructType([*keys, StructField("rank", IntegerType()), *others])

    def _made(self, rows: StructType, key: Sequence[str]) -> StatefulProcessor:
        from penstock.processors.workers.top_n import TopNProcessor

        names = tuple(self.output(rows, key).names)
        span_us = microseconds(self.span) if self.span else None
        return TopNProcessor(names, plain(rows), len(key), self.n, self.by, self.order == "least", self.time, span_us)
