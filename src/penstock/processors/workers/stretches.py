"""Stretches of time without a gap, and how they merge. Pure: times are microseconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Stretch(NamedTuple):
    """What came without a gap: the times of its first and last row, and what is kept of the rows."""

    start: int
    end: int
    kept: Any


def merged_stretches(
    stretches: Iterable[Stretch], gap: int, joined: Callable[[Stretch, Stretch], Any]
) -> list[Stretch]:
    """The stretches in order of time, those joined that lie less than a gap apart.

    The result does not depend on the order in which they come, if `joined` does not.
    """
    found: list[Stretch] = []
    for one in sorted(stretches, key=lambda stretch: stretch[:2]):
        if found and one.start < found[-1].end + gap:
            last = found.pop()
            one = Stretch(last.start, max(last.end, one.end), joined(last, one))  # noqa: PLW2901
        found.append(one)
    return found


def closed_by(stretches: Iterable[Stretch], gap: int, watermark: int) -> tuple[list[Stretch], list[Stretch]]:
    """Those that no row can lengthen any more, and the others."""
    done: list[Stretch] = []
    waiting: list[Stretch] = []
    for one in stretches:
        (done if one.end + gap <= watermark else waiting).append(one)
    return done, waiting


def first_end(stretches: Iterable[Stretch], gap: int) -> int | None:
    """When the first of them closes, if nothing comes."""
    return min((one.end + gap for one in stretches), default=None)
