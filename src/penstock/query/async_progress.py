"""Progress that is written down beside the work and not for each batch: Spark's asynchronous progress tracking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.notation.durations import to_milliseconds

DEFAULT_INTERVAL = "1 second"
CACHE = "spark.sql.streaming.metadataCache.enabled"
"""Spark keeps the batches that are not yet written down in this cache of its logs, and nowhere else."""


def parse(value: Any) -> bool | str:
    """As users write it: true, false, or how often progress is written down."""
    if isinstance(value, bool):
        return value
    try:
        if isinstance(value, str) and to_milliseconds(value) >= 0:
            return value
    except ValueError:
        pass
    raise PydanticCustomError(
        "async_progress", "is neither true nor false, nor a duration such as `1 second`; `0 seconds` is every batch"
    )


def interval_of(value: bool | str | None) -> str | None:
    """How often progress is written down; None where each batch waits for it."""
    if isinstance(value, str):
        return value
    return DEFAULT_INTERVAL if value else None


def lacks_cache(settings: Mapping[str, Any]) -> bool:
    """Do settings of Spark, as users write them, take away what asynchronous progress needs?"""
    return str(settings.get(CACHE)).strip().lower() == "false"


def writer_options(interval: str) -> dict[str, str]:
    return {
        "asyncProgressTrackingEnabled": "true",
        "asyncProgressTrackingCheckpointIntervalMs": str(to_milliseconds(interval)),
    }


AsyncProgress = Annotated[
    bool | str,
    BeforeValidator(parse),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "examples": [DEFAULT_INTERVAL]}]}),
]
