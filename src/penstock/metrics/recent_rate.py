"""A rate, from counts that are read now and then."""

from __future__ import annotations

from collections import deque

_SECONDS = 10.0


class RecentRate:
    """How much a count has grown a second, over the last ten. It begins anew when the count goes back."""

    def __init__(self) -> None:
        self._read: deque[tuple[float, int]] = deque()

    def add(self, at_seconds: float, count: int) -> None:
        if self._read and count < self._read[-1][1]:
            self._read.clear()
        self._read.append((at_seconds, count))
        while at_seconds - self._read[0][0] > _SECONDS:
            self._read.popleft()

    @property
    def per_second(self) -> float | None:
        """None before there are two counts."""
        (began, first), (ended, last) = (self._read[0], self._read[-1]) if self._read else ((0.0, 0), (0.0, 0))
        return (last - first) / (ended - began) if ended > began else None
