"""The stateless job with a trigger: how much of the latency is waiting for a batch, and how much the batch itself."""

from __future__ import annotations

from dataclasses import replace

from penstock.bench.workloads import stateless

INTERVALS = {"100ms": "100 milliseconds", "500ms": "500 milliseconds", "2s": "2 seconds"}
WORKLOADS = tuple(
    replace(
        stateless.WORKLOAD,
        name=f"every-{short}",
        title=f"the stateless job with a batch every {interval}",
        trigger=interval,
        flink=None,
    )
    for short, interval in INTERVALS.items()
)
