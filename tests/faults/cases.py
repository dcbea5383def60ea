"""Every fault that is tried."""

from __future__ import annotations

from tests.faults.breaks import (
    Case,
    broker_away,
    broker_of_the_sink_away,
    cannot_widen,
    disk_full,
    each_attempt,
    flagged,
    http_answers,
    listener_raises,
    other_pipeline_fails,
    postgres_away,
    storage_read_only,
    table_dropped,
)

CASES: tuple[Case, ...] = (
    Case("broker-60s", "The broker of a source is away for 60 s", "waits or restarts", broker_away(60)),
    Case("broker-once", "The same for 10 s in `run --once`", "waits or restarts", broker_away(10), ways=("once",)),
    Case(
        "sink-broker",
        "The broker of a sink is away for 10 s",
        "waits or restarts",
        broker_of_the_sink_away,
        repeats=True,
    ),
    Case("postgres-at-once", "PostgreSQL restarts at once", "recovers", postgres_away(0), short=True),
    Case("postgres-20s", "PostgreSQL is away for 20 s", "waits or restarts", postgres_away(20)),
    Case("postgres-once", "The same for 5 s in `run --once`", "waits or restarts", postgres_away(5), ways=("once",)),
    Case("table-dropped", "The table of the sink is dropped", "stops", table_dropped, "POSTGRES003"),
    Case("http-503", "An HTTP service answers 503 for a while", "waits or restarts", http_answers(503), repeats=True),
    Case("http-gone", "An HTTP service breaks every connection", "waits or restarts", http_answers(None), repeats=True),
    Case("worker-killed", "A Python worker is killed once", "waits or restarts", flagged(*each_attempt("kill", 1))),
    Case(
        "worker-killed-twice", "A Python worker is killed twice", "waits or restarts", flagged(*each_attempt("kill", 2))
    ),
    Case(
        "worker-killed-always",
        "A Python worker is killed in each attempt at a batch",
        "stops",
        flagged("kill-always", stays=True),
        "RUN003",
    ),
    Case("memory", "A Python worker runs out of memory", "waits or restarts", flagged(*each_attempt("memory", 1))),
    Case("user-code", "User code raises on one row", "stops", flagged("raise", stays=True)),
    Case("disk-full", "The disk of the checkpoint is full, then freed", "waits or restarts", disk_full),
    Case("read-only", "The checkpoint cannot be written", "stops", storage_read_only),
    Case("cannot-widen", "A new column for a table that may not widen", "stops", cannot_widen, short=True),
    Case("listener", "A listener of Spark's raises each time", "goes on", listener_raises, short=True),
    Case(
        "other-pipeline",
        "A query of another pipeline gives up",
        "goes on",
        other_pipeline_fails,
        code="FAILURE010",
        ways=("run",),
        short=True,
    ),
)
