"""How late a row may come and still count, and how far ahead of its time."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.notation.durations import Duration
from penstock.spec import Spec

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
OnFuture = Literal["fail", "drop", "dead_letter"]


class Watermark(Spec):
    """Set on a source or a step; what comes later than `delay` behind the newest row is dropped and counted."""

    column: str = Field(description="The event-time column, of type TIMESTAMP.")
    delay: Duration = Field(description="How far behind the newest row an older one may be.")
    max_future: Duration | None = Field(
        None,
        description="How far ahead of its arrival a row may be. One that is further ahead would move the watermark for"
        " all: it is put aside before the watermark sees it. Arrival is the time in Kafka, or that of the file; else,"
        " and at most, the time of the batch.",
    )
    on_future: OnFuture = Field(
        "dead_letter",
        description="A row from too far ahead: `dead_letter` puts it aside, `drop` leaves it out, `fail` stops.",
    )

    @model_validator(mode="after")
    def _nothing_is_ahead_of_no_limit(self) -> Self:
        if "on_future" in self.model_fields_set and self.max_future is None:
            raise PydanticCustomError("together", "`on_future` says what becomes of rows beyond `max_future`: add it")
        return self

    @property
    def puts_aside(self) -> bool:
        return self.max_future is not None and self.on_future == "dead_letter"
