"""How much a source has that a running query has not committed yet: asked of the source itself, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.facts.observed import Unread
from penstock.storage.batch_log import newest_batch
from penstock.storage.storage import Storage, join

_HEAD = 2
"""The lines of an offsets file before the offsets: its version, and the settings of the batch."""


@dataclass(frozen=True)
class Committed:
    """Up to where a query has committed, one line for each source, in the order of Spark's plan."""

    offsets: tuple[str, ...]
    """Empty before the first batch."""
    storage: Storage
    checkpoint: str


class LagMeter(Protocol):
    """Made once for a run, and asked every few seconds in a thread of its own."""

    def unread(self, committed: Committed) -> Unread | None:
        """None where it cannot be known yet. Raises Fault, OSError or ValueError where it cannot be asked."""


def in_progress(sources: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The offsets in which a batch ended, as Spark reports them."""
    ends = [source.get("endOffset") for source in sources]
    return tuple(end if isinstance(end, str) else json.dumps(end) for end in ends)


def in_checkpoint(storage: Storage, checkpoint: str) -> tuple[str, ...]:
    """The same from the newest committed batch of a checkpoint. Raises OSError."""
    newest = newest_batch(storage, join(checkpoint, "commits"))
    if newest is None:
        return ()
    return tuple(storage.read_text(join(checkpoint, "offsets", str(newest))).splitlines()[_HEAD:])


def json_of(offset: str) -> Any:
    """The offset of one source as data; None for a source that has none."""
    return None if offset == "-" else json.loads(offset)
