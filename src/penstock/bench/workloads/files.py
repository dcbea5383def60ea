"""Files that come into a folder with very many others: how long it takes to find a new one."""

from __future__ import annotations

from dataclasses import replace

from penstock.bench.workloads import stateless

_KAFKA = stateless.PIPELINE[: stateless.PIPELINE.index("steps:")]
PIPELINE = stateless.PIPELINE.replace(
    _KAFKA,
    f"""\
sources:
  orders:
    type: files
    path: ${{INPUT}}
    format: {{type: json, schema: "{stateless.SCHEMA}"}}
""",
)
COUNTS = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
WORKLOADS = tuple(
    replace(
        stateless.WORKLOAD,
        name=f"files-{short}",
        title=f"the stateless job on files, in a folder that holds {count:,} others",
        pipeline=PIPELINE,
        flink=None,
        reads="folder",
        most_rate=10.0,
        backlog=count,
    )
    for short, count in COUNTS.items()
)
