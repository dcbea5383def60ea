"""How late a row may come and still count."""

from __future__ import annotations

from pydantic import Field

from penstock.durations import Duration
from penstock.spec import Spec


class Watermark(Spec):
    """Set on a source or a step; what comes later than `delay` behind the newest row is dropped and counted."""

    column: str = Field(description="The event-time column, of type TIMESTAMP.")
    delay: Duration = Field(description="How far behind the newest row an older one may be.")
