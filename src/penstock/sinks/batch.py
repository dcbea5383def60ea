"""One micro-batch on its way into one sink, for the sinks that Penstock writes batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.sinks.ledger import InMemory, Ledger, is_done

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PutAside = Callable[["DataFrame"], None]
"""Keeps rows `raw BINARY, reason STRING` among the sink's dead letters: once, however often the batch is run."""


@dataclass(frozen=True)
class Batch:
    """What a ledger needs to know of a batch.

    A batch that was not committed is run again under the same `query_id` and `number`, with the same rows. The pair
    (`query_id`, `sink`) is the key of a ledger; the numbers under one key never go back.
    """

    pipeline: str
    query_id: str
    """The same for the life of the checkpoint; another one for each generation of it."""
    sink: str
    number: int
    put_aside: PutAside
    ledger: Ledger = field(default_factory=InMemory)
    """Durable notes, under any name, of what was done of which batch."""

    def once(self, name: str, action: Callable[[], object]) -> bool:
        """Runs `action` unless this very batch has done it already under `name`; says whether it ran.

        The note is made after the action. A crash between the two, or an action that raises, means that the action
        runs again: what it does must stand that.
        """
        key = f"{self.sink}/{name}"
        if is_done(self.ledger, key, self.number):
            return False
        action()
        self.ledger.note(key, self.number)
        return True
