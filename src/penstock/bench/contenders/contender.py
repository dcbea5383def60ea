"""The shape of a contender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.bench.job import Job
from penstock.bench.workloads.workload import Workload

HELD = "3600s"
"""So long a contender may be held between two of its turns. What waits for heartbeats must wait as long."""


@dataclass(frozen=True)
class Launch:
    """How its process is started: the command, and what is added to the environment."""

    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """What Spark says about the micro-batches of a run."""

    batches: int
    milliseconds: Mapping[str, int]
    """What they spent their time with."""

    @property
    def log_milliseconds(self) -> float:
        """What a batch takes to write down where it began and that it ended, on average."""
        return sum(self.milliseconds.get(phase, 0) for phase in ("walCommit", "commitOffsets")) / self.batches


@dataclass(frozen=True)
class Contender:
    """A way to run a workload. Its process ends on SIGTERM, or by itself when the job drains."""

    name: str
    title: str
    launch: Callable[[Workload, Job], Launch]
    """Puts what the process needs into the job's folder, and says how it is started."""
    cannot: Callable[[Workload], str | None] = lambda workload: None
    """Why it takes no part in a workload; None when it does."""
    prepare: Callable[[], None] = lambda: None
    """Fetches what it needs, before anything is measured. Raises UserError, and the contender is left out."""
    progress: Callable[[Path], Progress | None] = lambda folder: None
    """What it left in the job's folder about its micro-batches when it ended."""
