"""What became of a dead letter that was to be put back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from penstock.dead_letters.letters import Letter
from penstock.problems import Problem, Severity

UNSENT = "DEADLETTER006"

Status = Literal["sent", "would be sent", "sent before", "unchanged", "late", "cannot be sent", "failed"]


@dataclass(frozen=True)
class LateFor:
    """A query that will take the record for late."""

    query: str
    watermark: datetime
    event_time: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "watermark": self.watermark.isoformat(),
            "event_time": self.event_time.isoformat(),
        }


@dataclass(frozen=True)
class ReplayOutcome:
    """What became of one letter."""

    letter: Letter
    status: Status
    to: str | None = None
    why: str | None = None
    late_for: tuple[LateFor, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.letter.id,
            "pipeline": self.letter.pipeline,
            "node": self.letter.node,
            "check": self.letter.check,
            "status": self.status,
            "to": self.to,
            "why": self.why,
            "late_for": [late.to_json() for late in self.late_for],
        }


def problems_of(outcomes: Sequence[ReplayOutcome]) -> Iterator[Problem]:
    """What letters could not be put back, told once for each reason."""
    got_through = any(outcome.status in ("sent", "would be sent", "sent before", "unchanged") for outcome in outcomes)
    grouped: Counter[tuple[str, Status, str]] = Counter(
        (outcome.letter.node, outcome.status, outcome.why or "")
        for outcome in outcomes
        if outcome.status in ("failed", "cannot be sent")
    )
    for (node, status, why), count in grouped.items():
        letters = f"{count} dead letter{'s' if count > 1 else ''} of `{node}`"
        if status == "failed":
            yield Problem(
                UNSENT, f"{letters} could not be put back: {why}",
                "mend what is in the way, then run the same command again: what was sent is not sent twice",
            )  # fmt: skip
        else:
            severity: Severity = "warning" if got_through else "error"
            yield Problem(
                "DEADLETTER005", f"{letters} cannot be put back: {why}",
                "put the records right where they come from, or leave these letters out", severity=severity,
            )  # fmt: skip
