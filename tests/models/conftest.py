"""Runs steps over streams, one file a batch, and tells what came out of every batch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from penstock.actions.run import RunResult
from penstock.supervise.query_view import QueryView
from tests.conftest import place
from tests.models import collected
from tests.models.events import SCHEMA, START, Stream
from tests.models.outcome import Outcome, Row
from tests.models.trace import Batch, trace

DELAY = 10
"""Of the watermark of every source, in minutes."""
SOURCE = f"""
  {{name}}:
    type: files
    path: {{name}}
    max_files_per_trigger: 1
    format: {{{{type: json, schema: "{SCHEMA}"}}}}
    watermark: {{{{column: event_time, delay: {DELAY} minutes}}}}"""
QUERY = "  {step}: {{mode: {mode}, spark: {{spark.sql.shuffle.partitions: 1{more}}}}}"
SINK = "  {step}: {{of: {step}, type: python, each_batch: 'tests.models.collected:keep'}}"


@dataclass(frozen=True)
class Ran:
    """A query that has run."""

    batches: list[Batch]
    rows: dict[int, Counter[Row]]
    view: QueryView

    def is_as(self, model: Outcome) -> bool:
        """Every batch gave these rows, and no row that went in is unaccounted for."""
        assert self.rows == model.rows, f"watermarks: {[(one.late_until, one.closed_until) for one in self.batches]}"
        read = {event for batch in self.batches for rows in batch.rows for event in rows}
        assert {event for event, _ in model.fates} == read
        return True


Run = Callable[..., dict[str, Ran]]


@pytest.fixture
def run(run_once: Callable[..., RunResult], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs steps, given as YAML, over streams; `modes` and `spark` say by step what differs: mode, Spark settings."""

    def run_it(
        steps: dict[str, str],
        modes: dict[str, str] | None = None,
        spark: dict[str, str] | None = None,
        **inputs: Stream,
    ) -> dict[str, Ran]:
        root = tmp_path_factory.mktemp("model")
        for name, stream in inputs.items():
            for number, events in enumerate(stream):
                file = root / name / f"{number}.json"
                place(file, "".join(f"{event.to_json()}\n" for event in events))
                os.utime(file, (1_700_000_000 + number,) * 2)  # Spark takes files in the order of their time
        given = {
            step: {"mode": (modes or {}).get(step, "append"), "more": (spark or {}).get(step, "")} for step in steps
        }
        text = [
            "pipeline: model\nlatency: low\nsources:",
            *(SOURCE.format(name=name) for name in inputs),
            "steps:",
            *(f"  {step}: {body}" for step, body in steps.items()),
            "sinks:",
            *(SINK.format(step=step) for step in steps),
            "queries:",
            *(QUERY.format(step=step, **keys) for step, keys in given.items()),
        ]
        place(root / "penstock.yaml", "name: models\n")
        place(root / "pipelines" / "model.yaml", "\n".join(text))
        collected.held.clear()
        result = run_once(root)
        assert result.ok, result.problems
        home = root / "storage" / "checkpoints" / "model"
        read = list(inputs.values())
        views = {view.name: view for view in result.queries}
        return {step: Ran(trace(home / step / "0001", read), dict(collected.held[step]), views[step]) for step in steps}

    return run_it


def minutes(column: str) -> str:
    return f"(unix_seconds({column}) - {int(START.timestamp())}) DIV 60"


def per_window(window: str, *columns: str) -> str:
    """A step that counts per key and window."""
    times = ", ".join(f"{minutes(f'w.{column}')} AS {column}" for column in columns)
    counts = f"SELECT key, {window} AS w, count(*) AS n FROM events GROUP BY key, {window}"
    return f'{{sql: "SELECT key, {times}, n FROM ({counts})"}}'
