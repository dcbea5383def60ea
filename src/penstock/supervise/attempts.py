"""How often a query is started again after a failure."""

from __future__ import annotations

from collections import deque

_MOST = 3
_WITHIN_SECONDS = 60.0


class Attempts:
    """Three within a minute. A failure that comes back after all of them is there to stay."""

    def __init__(self) -> None:
        self._made: deque[float] = deque(maxlen=_MOST)

    def another(self, at_seconds: float) -> bool:
        """Takes one more, if there is one."""
        if len(self._made) == _MOST and at_seconds - self._made[0] < _WITHIN_SECONDS:
            return False
        self._made.append(at_seconds)
        return True
