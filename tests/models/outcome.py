"""What a model says: the rows of each batch, and what became of every row that went in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from tests.models.events import Event

Fate = Literal["out", "late", "duplicate", "open"]
"""In the output; behind the watermark; seen before; still held in state."""
Row = tuple[object, ...]


@dataclass
class Outcome:
    rows: dict[int, Counter[Row]] = field(default_factory=dict)
    """By batch; a batch without output is left out."""
    fates: list[tuple[Event, Fate]] = field(default_factory=list)

    def emit(self, batch: int, *row: object) -> None:
        self.rows.setdefault(batch, Counter())[row] += 1

    def note(self, event: Event, fate: Fate) -> None:
        self.fates.append((event, fate))

    def count(self, fate: Fate) -> int:
        return sum(one == fate for _, one in self.fates)
