"""Who is there, and who is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from penstock.processors.ready_made import (
    ReadyMade,
    Span,
    TimeMode,
    event_time_column,
    microseconds,
    plain,
    require_new,
    time_column,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType


class LastSeen(ReadyMade):
    """The last row per key, an alert when nothing has come for a time, and word when it comes back.

    Each row that it gives is the key's last one, with `status`: `seen`, `absent` or `returned`. `status_at` is when
    that became so, and `away_since` the time of the last row before the absence. By `event_time`, a key is absent when
    the watermark has passed its last row by `absent_after`; by `processing_time`, when the machine's clock has, which
    is looked at in each batch. Rows without a time are passed over by event time.
    """

    absent_after: Span = Field(description="A key from which nothing has come for so long is absent.")
    clock: Literal["event_time", "processing_time"] = Field(
        "event_time", description="What tells the time: the rows themselves, or the machine."
    )
    time: str | None = Field(
        None,
        description="The event-time column, of type TIMESTAMP. By processing time it only decides between the rows"
        " of one batch, and may be left out.",
    )
    forget_after: Span | None = Field(
        None, description="A key that has been absent for so long is forgotten; kept for ever if left out."
    )
    alerts_only: bool = Field(False, description="Leave out the `seen` rows.")

    example: ClassVar[str] = """\
process:
  of: readings
  key: [sensor]
  with: last_seen
  options: {time: measured_at, absent_after: 10 minutes, forget_after: 7 days}"""

    @model_validator(mode="after")
    def _event_time_has_a_column(self) -> LastSeen:
        if self.clock == "event_time" and self.time is None:
            raise ValueError("`time` is missing: name the event-time column, or set `clock: processing_time`")
        return self

    @property
    def time_mode(self) -> TimeMode:
        return self.clock

    def output(self, rows: StructType, key: Sequence[str]) -> StructType:
        from pyspark.sql.types import StringType, StructField, StructType, TimestampType

        if self.time:
            (event_time_column if self.clock == "event_time" else time_column)(rows, self.time)
        added = [
            StructField("status", StringType()),
            StructField("status_at", TimestampType()),
            StructField("away_since", TimestampType()),
        ]
        require_new((field.name for field in added), rows.names)
        return StructType([*plain(rows), *added])

    def _made(self, rows: StructType, key: Sequence[str]) -> StatefulProcessor:
        from penstock.processors.workers.last_seen import LastSeenProcessor

        return LastSeenProcessor(
            names=tuple(self.output(rows, key).names),
            rows=plain(rows),
            time=self.time,
            by_clock=self.clock == "processing_time",
            absent_us=microseconds(self.absent_after),
            forget_us=microseconds(self.forget_after) if self.forget_after else None,
            alerts_only=self.alerts_only,
        )
