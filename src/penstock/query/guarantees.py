"""What a query promises about its output, and why: the weakest of its sources, its trigger and its sink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Promise = Literal["exactly-once", "at-least-once", "none"]
_STRENGTH: dict[Promise, int] = {"none": 0, "at-least-once": 1, "exactly-once": 2}


@dataclass(frozen=True)
class Guarantee:
    promise: Promise
    reason: str


def weakest(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The promise that is left when several must hold; the first of equals gives the reason."""
    return min(guarantees, key=lambda guarantee: _STRENGTH[guarantee.promise])
