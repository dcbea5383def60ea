"""What the process of a contender is told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Job:
    """One run of one workload: where its records come from and go to."""

    workload: str
    servers: str
    input: str
    output: str
    folder: str
    """Its own: checkpoints, logs, the project's files. Gone after the run."""
    partitions: int
    drains: bool

    def to_text(self) -> str:
        return json.dumps(asdict(self))


def from_text(text: str) -> Job:
    return Job(**json.loads(text))
