"""When a query looks for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.durations import to_milliseconds, to_spark

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Kind = Literal["default", "processing_time", "available_now", "once"]
_WORDS: tuple[Kind, ...] = ("default", "available_now", "once")


@dataclass(frozen=True)
class Trigger:
    """`default` runs batch after batch; a duration starts one each interval; `available_now` takes what is there.

    `once` is deprecated in Spark: it takes all in one batch, however large.
    """

    kind: Kind
    interval: str | None = None

    @property
    def ends(self) -> bool:
        """Does the query end by itself?"""
        return self.kind in ("available_now", "once")

    def set_on(self, writer: DataStreamWriter) -> DataStreamWriter:
        match self.kind:
            case "processing_time":
                return writer.trigger(processingTime=to_spark(self.interval or ""))
            case "available_now":
                return writer.trigger(availableNow=True)
            case "once":
                return writer.trigger(once=True)
            case "default":
                return writer

    def __str__(self) -> str:
        return self.interval or self.kind


def parse(value: Any) -> Trigger:
    """A trigger as users write it: `10 seconds`, `available_now`, `once`, `default`."""
    if isinstance(value, Trigger):
        return value
    for word in _WORDS:
        if value == word:
            return Trigger(word)
    try:
        if isinstance(value, str) and to_milliseconds(value) >= 0:
            return Trigger("processing_time", value)
    except ValueError:
        pass
    raise PydanticCustomError(
        "trigger", "is not a trigger; write a duration such as `10 seconds`, or `available_now`, `once`, `default`"
    )


AnyTrigger = Annotated[
    Trigger,
    BeforeValidator(parse),
    WithJsonSchema({"type": "string", "examples": ["10 seconds", "available_now", "once", "default"]}),
]
