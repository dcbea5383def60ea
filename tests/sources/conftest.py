"""Reads a source to its end through a whole pipeline: Python API, checks, session, query, memory sink."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import Pipeline
from penstock.sinks import Memory
from penstock.sources.source import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import Row

SELECT = "SELECT * FROM it"


@dataclass(frozen=True)
class Taken:
    """What a run took from a source."""

    rows: list[Row]
    batches: list[int]
    """How many rows each batch read, the empty ones left out."""
    types: dict[str, str]

    def column(self, name: str) -> list[Any]:
        """The values of a column, in the order in which batches brought them."""
        return [row[name] for row in self.rows]


TakeAll = Callable[..., Taken]


def pipeline_of(source: SourceSpec, sql: str) -> Pipeline:
    pipeline = Pipeline("taken", latency="low")
    pipeline.source("it", source)
    pipeline.sql("all_of_it", sql)
    pipeline.sink("held", Memory(), of="all_of_it")
    return pipeline


@pytest.fixture
def take_all(engine: Any, tmp_path: Path) -> TakeAll:
    """All that a source has now, as `run --once` takes it."""

    def take_all(source: SourceSpec, sql: str = SELECT) -> Taken:
        with pipeline_of(source, sql).start(project=tmp_path, once=True) as handle:
            assert handle.await_termination(60)
            (query,) = handle.queries.values()
            table = handle.table("held")
            counts = [progress["numInputRows"] for progress in query.recent_progress]
            return Taken(table.collect(), [count for count in counts if count], dict(table.dtypes))

    return take_all


@pytest.fixture
def flowing(engine: Any, tmp_path: Path) -> Callable[..., Any]:
    """The rows of a source that never ends: each call gives those that came so far."""

    @contextmanager
    def flowing(source: SourceSpec, sql: str = SELECT) -> Iterator[Callable[[], list[Row]]]:
        with pipeline_of(source, sql).start(project=tmp_path) as handle:
            yield lambda: handle.table("held").collect()

    return flowing


def wait_for(what: Callable[[], Any], seconds: float = 300) -> Any:
    """The first answer that is true."""
    deadline = time.monotonic() + seconds
    while not (answer := what()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.05)
    return answer
