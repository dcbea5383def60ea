"""What Spark and Penstock say of a case. Spark is asked twice: its own checker, and by a start for one batch.

A start takes a second, and most starts decide nothing new. So cases that Spark plans with the same operators that a
start could refuse, in the same mode, for the same sink and trigger, share one start. A case whose rules contradict the
start that it shares is started itself. With `every`, each case is started.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from penstock.checks.every_rule import rules
from penstock.checks.rule import Subject
from penstock.engine import build, resolve
from penstock.engine.latency import FILE_MANAGER, RENAMING
from penstock.engine.plan_facts import plan_of_rows
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
AT_ONCE = 4
"""A start mostly waits: for threads, files and Python."""
PATIENCE = 600
"""In seconds. A start that is not over by then is an error of the judge, and never a verdict."""
DECIDING = re.compile(
    r"\b(?:StateStore|Streaming(?!Relation)|SessionWindowState|FlatMapGroups|TransformWithState|Generate|Expand|Window\b"
    r"|LocalLimit|EventTimeWatermark|Union|BroadcastHashJoin)\w*"
)
"""Operators of a physical plan that a start could refuse. All others run in every query of these cases."""
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


class NoVerdict(Exception):
    """A start was neither done nor refused in time: nothing is known of the case."""


@dataclass
class Starts:
    """The starts that were made, each for the first case of its kind."""

    every: bool
    count: int = 0
    _shared: dict[tuple[str, ...], Future[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def outcome(self, kind: tuple[str, ...], accepted: bool, start: Callable[[], str]) -> str:
        """Why Spark refuses a case at its start, or nothing. `accepted` is what Penstock's rules say of it."""
        with self._lock:
            shared = self._shared.get(kind)
            first = shared is None
            if shared is None:
                shared = self._shared[kind] = Future()
        if first:
            try:
                shared.set_result(self._begun(start))
            except NoVerdict as none:
                shared.set_exception(none)
            return shared.result()
        if self.every or bool(shared.result()) == accepted:
            return self._begun(start)
        return shared.result()

    def _begun(self, start: Callable[[], str]) -> str:
        with self._lock:
            self.count += 1
        return start()


def verdicts(engine: Engine, root: Path, cases: Iterable[Case], starts: Starts) -> Iterator[Verdict]:
    """One by one, in a project at `root` that is made for them. Raises NoVerdict."""
    _project_at(root)
    use_modules_of(root)
    engine.use_modules_of(root)
    mine = threading.local()

    def judged(numbered: tuple[int, Case]) -> Verdict:
        number, case = numbered
        if not hasattr(mine, "sessions"):
            mine.sessions = (engine.session(SETTINGS), engine.session(SETTINGS | {PROVIDER: ROCKSDB}))
        return _verdict(engine, mine.sessions[case.family == "step"], root, case, number, starts)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(judged, enumerate(cases))


def _project_at(root: Path) -> None:
    (root / "in").mkdir(parents=True, exist_ok=True)
    times = pyarrow.array([datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 7)], pyarrow.timestamp("us", "UTC"))
    parquet.write_table(pyarrow.table({"ts": times, "k": [1, 2], "v": [1, 2]}), root / "in/1.parquet")
    (root / "penstock.yaml").write_text("name: judged\n", encoding="utf-8")
    (root / "judged.py").write_text(MODULE, encoding="utf-8")
    (root / "judged_sinks.py").write_text(SINKS_MODULE, encoding="utf-8")


def _verdict(engine: Engine, session: Any, root: Path, case: Case, number: int, starts: Starts) -> Verdict:
    home = project.bare(root)
    written = from_yaml.from_document(parse(case.text, "case.yaml"), root)
    pipeline = resolve.pipeline(written, home, os.environ)
    query = pipeline.queries[0]
    subject = Subject(home, pipeline)
    by_text = _codes(subject) if subject.plan(query) is not None else None
    try:
        frames = build.frames(session, pipeline, query.name).rows
    except UserError as error:
        told = error.problems[0].message
        assert "column" not in told, f"{case.id} is not what it means to be: {told}"
        return Verdict(case.family, case.name, told, "declared", by_text or (), by_text)
    rows = frames[query.name]
    by_plan = _codes(Subject(home, pipeline, plans={query.name: plan_of_rows(rows, query.name, tuple(pipeline.nodes))}))
    if not rows.isStreaming:
        return Verdict(case.family, case.name, "no stream", "asked", by_plan or ("SPARK006",), None)
    refused = build.refusal_of(rows, query.settings.mode)
    if refused is not None:
        return Verdict(case.family, case.name, _first_line(refused), "asked", by_plan, by_text)
    checkpoint = root / "checkpoints" / str(number)
    said = starts.outcome(
        kind_of(case, pipeline, rows), not by_plan, lambda: _started(engine, pipeline, query, frames, checkpoint, case)
    )
    return Verdict(case.family, case.name, said, "started" if said else "", by_plan, by_text)


def kind_of(case: Case, pipeline: Pipeline, rows: Any) -> tuple[str, ...]:
    """What a start of the case decides. Equal for two cases: one start decides both."""
    query = pipeline.queries[0]
    trigger, mode = query.settings.trigger or Trigger("available_now"), query.settings.mode
    if trigger.kind in ("continuous", "real_time"):
        return (case.id,)  # these have lists of their own of what they run, which only a start reads
    try:
        planned = rows._sc._jvm.PythonSQLUtils.explainString(rows._jdf.queryExecution(), "simple")
    except Exception:  # noqa: BLE001 - what cannot be planned alone is judged alone
        return (case.id,)
    operators = sorted(set(DECIDING.findall(planned)))
    if case.family == "sink":
        # A sink refuses modes, and rows that change: it does not see which operators made them, or when.
        changing = "changing" if any("StateStore" in name for name in operators) else "fixed"
        of_trigger = str(trigger) if query.sink.spec.type == "console" else ""
        return (case.text.partition("sinks:")[2].splitlines()[0], mode, changing, of_trigger)
    return (mode, *operators)


def _codes(subject: Subject) -> tuple[str, ...]:
    return tuple(sorted({problem.code for rule in JUDGES for problem in rule(subject)}))


def _started(
    engine: Engine, pipeline: Pipeline, query: Query, frames: dict[str, Any], checkpoint: Path, case: Case
) -> str:
    """Why it could not run for one batch, or nothing. Raises NoVerdict."""
    built = build.Built(query, frames[query.name].sparkSession, frames)
    trigger = query.settings.trigger or Trigger("available_now")
    try:
        streaming = build.start(engine, pipeline, built, str(checkpoint), "judged", trigger).streaming
    except UserError as error:
        return error.problems[0].message
    try:
        ran = streaming.awaitTermination(PATIENCE) if trigger.ends else _ran(streaming, checkpoint)
    except Exception as error:  # noqa: BLE001 - whatever Spark says is its verdict
        return _first_line(error)
    finally:
        streaming.stop()
    if not ran:
        raise NoVerdict(f"{case.id}: neither done nor refused within {PATIENCE} s")
    return ""


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
