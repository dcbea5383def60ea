"""How a run is asked to end, and how a query ends without losing the batch under way."""

from __future__ import annotations

import threading
import time

from penstock.supervise.running import RunningQuery

_PATIENCE_SECONDS = 1.0


class Stop:
    """How a run is asked to end: once to let the batches under way commit, twice to end at once."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._at_once = threading.Event()

    def ask(self) -> None:
        (self._at_once if self._asked.is_set() else self._asked).set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    @property
    def at_once(self) -> bool:
        return self._at_once.is_set()


class Drain:
    """Stops a query once the batch that was under way has committed: `stop()` in its middle would undo its work."""

    def __init__(self, query: RunningQuery) -> None:
        self._query = query
        self._awaited: int | None = None
        self._has_looked = False
        self._committed_since: float | None = None

    def go_on(self, *, at_once: bool) -> None:
        """Looks again, and stops the query if it can be stopped now."""
        if self._query.is_active and (at_once or self._has_committed()):
            self._query.stop()

    def _has_committed(self) -> bool:
        # Looked at just before it is stopped: while another query was being stopped, this one may have begun a batch.
        if not self._has_looked:
            self._awaited, self._has_looked = self._query.batch_under_way, True
        if self._awaited is None:
            return True
        if self._query.last_commit < self._awaited:
            return False
        # Spark reports a batch just after its commit; without a moment's patience its rows would not be counted.
        if self._committed_since is None:
            self._committed_since = time.monotonic()
        last = self._query.last_progress
        reported = bool(last and int(last["batchId"]) >= self._awaited)
        return reported or time.monotonic() - self._committed_since > _PATIENCE_SECONDS
