"""What Spark and Penstock say of a case. Spark is asked twice: its own checker, and by a start for one batch."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from penstock.checks.rule import Subject
from penstock.checks.runner import rules
from penstock.engine import build, resolve
from penstock.engine.latency import FILE_MANAGER, RENAMING
from penstock.engine.plan_facts import plan_of
from penstock.engine.session import Engine
from penstock.pipeline import from_yaml, project
from penstock.pipeline.load import use_modules_of
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.yaml_text import parse
from penstock.problems import UserError
from penstock.query.state_store import PROVIDER
from penstock.query.triggers import Trigger
from tests.judge.cases import MODULE, Case

SINKS_MODULE = '''\
"""Sinks that take everything."""


def batch(rows, number):
    rows.count()


def row(row):
    pass


def shout(text):
    return text.upper()
'''
AT_ONCE = 3
"""A start mostly waits: for threads, files and Python."""
PATIENCE = 120
"""In seconds: a busy machine is no verdict."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.pollingDelay": "1ms",
    # Hadoop's other one starts processes for every file, and a batch has a dozen.
    FILE_MANAGER: RENAMING,
    # Two rows are quicker read than code for them is compiled.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
JUDGES = [rule for rule in rules() if rule.kind in ("engine", "start")]


@dataclass(frozen=True)
class Verdict:
    """What was said of one case. `spark` is why Spark refuses, or empty."""

    family: str
    name: str
    spark: str
    stage: str
    """Where Spark refused: while it was declared, when it was asked, or at the start."""
    by_plan: tuple[str, ...]
    """The codes of the rules that refuse it, with the plan that Spark made."""
    by_text: tuple[str, ...] | None
    """The same from the text alone; None where the text does not tell."""

    @property
    def agrees(self) -> bool:
        refused = bool(self.spark)
        return refused == bool(self.by_plan) and (self.by_text is None or refused == bool(self.by_text))

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"agrees": self.agrees}


def verdicts(engine: Engine, root: Path, cases: Iterable[Case]) -> Iterator[Verdict]:
    """One by one, in a project at `root` that is made for them."""
    _project_at(root)
    use_modules_of(root)
    engine.use_modules_of(root)
    mine = threading.local()

    def judged(numbered: tuple[int, Case]) -> Verdict:
        number, case = numbered
        if not hasattr(mine, "sessions"):
            mine.sessions = (engine.session(SETTINGS), engine.session(SETTINGS | {PROVIDER: ROCKSDB}))
        return _verdict(engine, mine.sessions[case.family == "step"], root, case, number)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(judged, enumerate(cases))


def _project_at(root: Path) -> None:
    (root / "in").mkdir(parents=True, exist_ok=True)
    times = pyarrow.array([datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 7)], pyarrow.timestamp("us", "UTC"))
    parquet.write_table(pyarrow.table({"ts": times, "k": [1, 2], "v": [1, 2]}), root / "in/1.parquet")
    (root / "penstock.yaml").write_text("name: judged\n", encoding="utf-8")
    (root / "judged.py").write_text(MODULE, encoding="utf-8")
    (root / "judged_sinks.py").write_text(SINKS_MODULE, encoding="utf-8")


def _verdict(engine: Engine, session: Any, root: Path, case: Case, number: int) -> Verdict:
    home = project.bare(root)
    written = from_yaml.from_document(parse(case.text, "case.yaml"), root)
    pipeline = resolve.pipeline(written, home, os.environ)
    query = pipeline.queries[0]
    subject = Subject(home, pipeline)
    by_text = _codes(subject) if subject.plan(query) is not None else None
    try:
        frames = build.frames(session, pipeline, query.name)
    except UserError as error:
        told = error.problems[0].message
        assert "column" not in told, f"{case.id} is not what it means to be: {told}"
        return Verdict(case.family, case.name, told, "declared", by_text or (), by_text)
    rows = frames[query.name]
    by_plan = _codes(Subject(home, pipeline, plans={query.name: plan_of(rows, query.name, tuple(pipeline.nodes))}))
    if not rows.isStreaming:
        return Verdict(case.family, case.name, "no stream", "asked", by_plan or ("SPARK006",), None)
    refused = build.refusal_of(rows, query.settings.mode)
    if refused is not None:
        return Verdict(case.family, case.name, _first_line(refused), "asked", by_plan, by_text)
    said = _started(engine, pipeline, query, frames, root / "checkpoints" / str(number))
    return Verdict(case.family, case.name, said, "started" if said else "", by_plan, by_text)


def _codes(subject: Subject) -> tuple[str, ...]:
    return tuple(sorted({problem.code for rule in JUDGES for problem in rule(subject)}))


def _started(engine: Engine, pipeline: Pipeline, query: Query, frames: dict[str, Any], checkpoint: Path) -> str:
    """Why it could not run for one batch, or nothing."""
    built = build.Built(query, frames[query.name].sparkSession, frames)
    trigger = query.settings.trigger or Trigger("available_now")
    try:
        streaming = build.start(engine, pipeline, built, str(checkpoint), "judged", trigger).streaming
    except UserError as error:
        return error.problems[0].message
    try:
        ran = streaming.awaitTermination(PATIENCE) if trigger.ends else _ran(streaming, checkpoint)
        return "" if ran else "nothing ran"
    except Exception as error:  # noqa: BLE001 - whatever Spark says is its verdict
        return _first_line(error)
    finally:
        streaming.stop()


def _ran(streaming: Any, checkpoint: Path) -> bool:
    # Continuous Processing reports no progress; what it cannot write fails when the second epoch begins.
    second_epoch = checkpoint / "commits/1"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if streaming.exception() is not None:
            raise streaming.exception()
        if streaming.lastProgress is not None or second_epoch.exists():
            return True
        time.sleep(0.01)
    return False


def _first_line(error: Exception) -> str:
    return next(line for line in str(error).splitlines() if line.strip())
