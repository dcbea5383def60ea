"""'10 minutes' and back. Spark's own spelling is kept; this module only understands it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_MILLISECONDS = {
    "millisecond": 1, "ms": 1,
    "second": 1_000, "sec": 1_000, "s": 1_000,
    "minute": 60_000, "min": 60_000, "m": 60_000,
    "hour": 3_600_000, "h": 3_600_000,
    "day": 86_400_000, "d": 86_400_000,
    "week": 604_800_000, "w": 604_800_000,
}  # fmt: skip
_LONGEST = 2**63 - 1  # milliseconds are a `long` in Spark
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)")


def to_milliseconds(text: str) -> int:
    """The length of a duration such as `10 minutes`, `1 hour 30 minutes` or `500ms`; ValueError if it is none."""
    position, total = 0, 0.0
    while match := _PART.match(text, position):
        unit = match[2].lower()
        factor = _MILLISECONDS.get(unit) or _MILLISECONDS.get(unit.removesuffix("s"))
        if factor is None:
            break
        total += float(match[1]) * factor
        position = match.end()
    if position == 0 or text[position:].strip() or total > _LONGEST:
        raise ValueError(f"`{text}` is not a duration; write it as `10 seconds`, `5 minutes` or `2 hours`")
    return round(total)


def to_words(milliseconds: float) -> str:
    """A length for people: `850 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`."""
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def to_spark(text: str) -> str:
    """The duration in the spelling that every Spark API takes."""
    return f"{to_milliseconds(text)} milliseconds"


def _checked(text: str) -> str:
    to_milliseconds(text)
    return text


Duration = Annotated[str, AfterValidator(_checked)]
"""A duration as the user wrote it, known to be one."""
