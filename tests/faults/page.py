"""The page of faults, from what a run of all of them has seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

_WAYS = {"run": "`penstock run`", "once": "`penstock run --once`", "start": "`Pipeline.start()`"}
_HOW = """<!-- Written by `make faults`. -->

# What happens when something fails

Each row is a fault that a test causes in a running pipeline, on the real engine and against real services. Ten ids are
in the sink before it, and ten more arrive while it lasts. *Seconds* is the time from the end of the cause until all ids
are in the sink; where the query stopped, it is the time of the next `penstock run --once`. *Lost* and *repeated* count
ids. A sink that promises at-least-once may repeat some.
"""


def write_page(path: Path, seen: Sequence[tuple[Any, str, Any]]) -> None:
    rows = [
        f"| {case.what} | {_WAYS[way]} | {one.decided} | {one.seconds:.1f} | {one.lost} | {one.repeated} |"
        for case, way, one in seen
    ]
    head = ["| fault | through | what Penstock did | seconds | lost | repeated |", "|---|---|---|---|---|---|"]
    path.write_text("\n".join([_HOW, *head, *rows]) + "\n", encoding="utf-8")
