"""The shape of a contender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.bench.job import Job
from penstock.bench.workloads.workload import Workload


@dataclass(frozen=True)
class Launch:
    """How its process is started: the command, and what is added to the environment."""

    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


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
