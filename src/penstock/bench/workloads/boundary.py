"""The stateless job with short batches in Real-Time Mode: how long nothing comes out between two of them."""

from __future__ import annotations

from dataclasses import replace

from penstock.bench.workloads import stateless

WORKLOAD = replace(
    stateless.WORKLOAD,
    name="boundary",
    title="the stateless job, with batches of 5 seconds in Real-Time Mode: the pause between two",
    boundary="5 seconds",
)
