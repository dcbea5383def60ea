"""When a query looks for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.notation.durations import to_milliseconds, to_spark
from penstock.spark_internals import set_real_time

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Latency = Literal["realtime", "low", "balanced", "throughput"]
Kind = Literal["default", "processing_time", "available_now", "once", "continuous", "real_time"]
_WORDS: tuple[Kind, ...] = ("default", "available_now", "once")
_MAPPINGS: tuple[Kind, ...] = ("continuous", "real_time")


@dataclass(frozen=True)
class Trigger:
    """`default` runs batch after batch; a duration starts one each interval; `available_now` takes what is there.

    `once` is deprecated in Spark: it takes all in one batch, however large. `continuous` hands each row on at once and
    writes a checkpoint each interval; `real_time` does so within batches that are as long as the interval.
    """

    kind: Kind
    interval: str | None = None

    @property
    def ends(self) -> bool:
        """Does the query end by itself?"""
        return self.kind in ("available_now", "once")

    @property
    def emits_early(self) -> bool:
        """Do rows leave before the end of their batch?"""
        return self.kind in ("continuous", "real_time")

    @property
    def retries_tasks(self) -> bool:
        """Does Spark run a failed task again, on a cluster? In Continuous Processing the query ends with it."""
        return self.kind != "continuous"

    @property
    def allows_async_progress(self) -> bool:
        """May progress be written down beside the work?"""
        return self.kind in ("default", "processing_time")

    def set_on(self, writer: DataStreamWriter) -> DataStreamWriter:
        match self.kind:
            case "processing_time":
                return writer.trigger(processingTime=to_spark(self.interval or ""))
            case "available_now":
                return writer.trigger(availableNow=True)
            case "once":
                return writer.trigger(once=True)
            case "continuous":
                return writer.trigger(continuous=to_spark(self.interval or ""))
            case "real_time":
                return _in_real_time(writer, to_spark(self.interval or ""))
            case "default":
                return writer

    def __str__(self) -> str:
        if self.kind in _MAPPINGS:
            return f"{self.kind} {self.interval}"
        return self.interval or self.kind


OF_LATENCY: dict[Latency, Trigger] = {
    "realtime": Trigger("real_time", "5 minutes"),
    "low": Trigger("default"),
    "balanced": Trigger("processing_time", "5 seconds"),
    "throughput": Trigger("processing_time", "1 minute"),
}
"""The trigger that a latency word stands for."""


def parse(value: Any) -> Trigger:
    """A trigger as users write it: `10 seconds`, `available_now`, `once`, `default`."""
    if isinstance(value, Trigger):
        return value
    for word in _WORDS:
        if value == word:
            return Trigger(word)
    try:
        if isinstance(value, dict) and len(value) == 1:
            kind, interval = next(iter(value.items()))
            if kind in _MAPPINGS and to_milliseconds(interval) > 0:
                return Trigger(kind, interval)
        if isinstance(value, str) and to_milliseconds(value) >= 0:
            return Trigger("processing_time", value)
    except (ValueError, TypeError):
        pass
    raise PydanticCustomError(
        "trigger",
        "is not a trigger; write a duration such as `10 seconds`, or `available_now`, `once`, `default`,"
        " `{continuous: 1 second}`, `{real_time: 5 minutes}`",
    )


def _in_real_time(writer: DataStreamWriter, interval: str) -> DataStreamWriter:
    """PySpark knows the trigger from 4.2 on."""
    import inspect

    inside: Any = writer
    if "realTime" in inspect.signature(writer.trigger).parameters:
        inside.trigger(realTime=interval)
        return writer
    return set_real_time(writer, interval)


AnyTrigger = Annotated[
    Trigger,
    BeforeValidator(parse),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "examples": ["10 seconds", "available_now", "once", "default"]},
                {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": False,
                    "properties": {kind: {"type": "string", "examples": ["5 minutes"]} for kind in _MAPPINGS},
                },
            ]
        }
    ),
]
