"""How far a query is behind its sources now, asked in a thread of its own: the run never waits for the answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.facts.observed import Unread
from penstock.sources.lag_meter import Committed, LagMeter

ASK_SECONDS = 2.0
"""A source is asked at most this often. A run that is over sooner asks nothing."""
_PATIENCE = 5
"""A source that takes long to answer is left alone for this many times as long."""
_LONGEST_SECONDS = 30.0


@dataclass(frozen=True)
class Seen:
    """The answers of one moment."""

    at: float
    """Seconds since 1970."""
    unread: Mapping[str, Unread]


class LagPoller:
    """Asks the sources of one query. `seen` has the last answers; it stays as it is while nothing can be asked."""

    def __init__(self, meters: Mapping[str, LagMeter], committed: Callable[[], Committed]) -> None:
        self.seen: Seen | None = None
        self._meters, self._committed = meters, committed
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Called again after a restart, it goes on asking."""
        if self._meters and self._thread is None:
            self._thread = threading.Thread(target=self._ask_until_the_end, name="penstock-lag", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Does not wait for a question that is under way."""
        self._ended.set()

    def _ask_until_the_end(self) -> None:
        pause = ASK_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            answered = self._ask()
            lasted = time.monotonic() - began
            pause = max(ASK_SECONDS, _PATIENCE * lasted) if answered else max(2 * pause, _PATIENCE * lasted)
            pause = min(pause, _LONGEST_SECONDS)

    def _ask(self) -> bool:
        unread: dict[str, Unread] = {}
        at = time.time()
        try:
            committed = self._committed()
            for source, meter in self._meters.items():
                if (count := meter.unread(committed)) is not None:
                    unread[source] = count
        except Exception:  # noqa: BLE001 - away, or being written; whatever it is, the run goes on without the answer
            return False  # the last one stays, and its age shows
        if unread and not self._ended.is_set():
            self.seen = Seen(at, unread)
        return True
