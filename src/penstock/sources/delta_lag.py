"""How many versions of a Delta table a query has not committed yet."""

from __future__ import annotations

from pathlib import Path

from penstock.facts.observed import Unread
from penstock.sources.lag_meter import Committed, json_of


class DeltaLag:
    """Lists the log of a local table. None where a query reads several tables: their offsets bear no names."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "_delta_log"

    def unread(self, committed: Committed) -> Unread | None:
        ends = [end for end in map(json_of, committed.offsets) if isinstance(end, dict) and "reservoirVersion" in end]
        if len(ends) != 1:
            return None
        newest = max((int(one.stem) for one in self._log.glob("*.json") if one.stem.isdigit()), default=-1)
        # Delta names the next version to read, or the one that it has read in part.
        return Unread(max(0, newest + 1 - int(ends[0]["reservoirVersion"])), "version")
