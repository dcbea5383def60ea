"""The one list of workloads."""

from __future__ import annotations

from penstock.bench.workloads import (
    boundary,
    deduplicate,
    drain,
    enrichment,
    files,
    intervals,
    join,
    keyed_count,
    processor,
    recovery,
    stateless,
    udf,
    window,
)
from penstock.bench.workloads.workload import Workload

WORKLOADS: tuple[Workload, ...] = (
    stateless.WORKLOAD,
    keyed_count.WORKLOAD,
    drain.WORKLOAD,
    enrichment.WORKLOAD,
    deduplicate.WORKLOAD,
    window.WORKLOAD,
    udf.WORKLOAD,
    join.WORKLOAD,
    processor.WORKLOAD,
    recovery.WORKLOAD,
    boundary.WORKLOAD,
    *intervals.WORKLOADS,
    *files.WORKLOADS,
)
"""In the order in which they are listed and run."""
USUAL = WORKLOADS[:3]
"""Those that are run when none is named."""


def named(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)
