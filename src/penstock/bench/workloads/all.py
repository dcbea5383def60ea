"""The one list of workloads."""

from __future__ import annotations

from penstock.bench.workloads import drain, keyed_count, stateless
from penstock.bench.workloads.workload import Workload

WORKLOADS: tuple[Workload, ...] = (stateless.WORKLOAD, keyed_count.WORKLOAD, drain.WORKLOAD)
"""In the order in which they are listed and run."""


def named(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)
