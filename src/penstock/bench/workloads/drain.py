"""The stateless job on records that wait already: how many can be taken in a second."""

from __future__ import annotations

from dataclasses import replace

from penstock.bench.workloads import stateless

WORKLOAD = replace(
    stateless.WORKLOAD, name="drain", title="the stateless job at its maximum rate", drains=True, partitions=2
)
