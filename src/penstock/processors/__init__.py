"""Stateful processors that users would otherwise write by hand, for `process:` steps.

Each has one file here with its options, which are pure, and one in `workers/` with what Spark runs.
"""

from __future__ import annotations

from penstock.processors.last_seen import LastSeen
from penstock.processors.ready_made import ReadyMade
from penstock.processors.sessionize import Sessionize
from penstock.processors.top_n import TopN
from penstock.processors.velocity import Velocity

READY_MADE: dict[str, type[ReadyMade]] = {
    "last_seen": LastSeen,
    "sessionize": Sessionize,
    "top_n": TopN,
    "velocity": Velocity,
}
"""By the word that a user writes after `with:`, the options of the processor; they make it, and know its output."""
