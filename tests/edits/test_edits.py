"""Every edit is planned, then tried on Spark with the plan ignored, and compared with a fresh run over all input."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from penstock.actions.plan import plan
from penstock.plan.verdict import QueryPlan
from penstock.prepare import ready
from penstock.problems import UserError
from tests.conftest import place
from tests.edits.cases import EDITS, Edit
from tests.edits.shapes import Text

FIRST, SECOND = 0, 1
STATIC_ROWS = (
    '{"k": "x", "k2": "p", "region": "north", "rate": 2}\n{"k": "y", "k2": "q", "region": "south", "rate": 3}\n'
)


def rows_of(batch: int, shift: int) -> str:
    rows = []
    for number in range(12):
        id_ = batch * 100 + number
        minute = batch * 12 + number
        rows.append(
            {
                "id": id_ + shift * 1000,
                "k": "xyz"[(number + shift) % 3],
                "k2": "pqr"[(number // 2) % 3],
                "v": number + 1,
                "u": (number * 7) % 5 + 1,
                "w": number / 2,
                "at": f"2026-01-01T00:{minute:02d}:00Z",
                "at2": f"2026-01-01T00:{59 - minute:02d}:30Z",
                "tags": ["p", "q"],
                "pair": {"x": number % 2, "y": number},
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows)


def project(root: Path, text: Text) -> Path:
    place(root / "penstock.yaml", f"name: edits\nrestarts: {{most: 0}}\n{text.project}")
    place(root / "s" / "0.json", STATIC_ROWS)
    for name, code in text.files:
        place(root / name, code)
    place(root / "pipelines" / "p.yaml", text.yaml)
    return root


def feed(root: Path, batch: int) -> None:
    for number, folder in enumerate(("a", "b")):
        place(root / folder / f"{batch}.json", rows_of(batch, number))


def written(spark, root: Path) -> Counter[str]:
    """All rows at the sink, wherever the edit has put it."""
    found: Counter[str] = Counter()
    for folder in ("out", "out2"):
        if (root / folder / "_delta_log").exists():
            rows = spark.read.format("delta").load(str(root / folder))
        elif (root / folder).exists():
            try:
                rows = spark.read.json(str(root / folder))
            except Exception:  # noqa: BLE001 - a log that begins in its middle: no reader gets the rows
                return Counter(["unreadable"])
        else:
            continue
        found.update(json.dumps(row.asDict(recursive=True), sort_keys=True, default=str) for row in rows.collect())
    return found


def outcome(run_once, root: Path) -> bool:
    try:
        return bool(run_once(root).ok)
    except UserError:
        return False


def fresh(spark, run_once, root: Path, text: Text) -> Counter[str]:
    """The rows of a run that began with the text as it is after the edit."""
    project(root, text)
    for batch in (FIRST, SECOND):
        feed(root, batch)
        assert outcome(run_once, root)
    return written(spark, root)


def reload_modules(spark, root: Path, text: Text) -> None:
    """Lets this process and the workers read the modules again, as a new process would."""
    for name, _ in text.files:
        sys.modules.pop(name.removesuffix(".py"), None)
    shutil.rmtree(root / "__pycache__", ignore_errors=True)
    importlib.invalidate_caches()
    spark.sparkContext.environment["EDITED"] = root.parent.name  # workers are shared by those of one environment


SAMPLE = 16


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(edit, id=edit.name, marks=[] if number % SAMPLE == 0 else [pytest.mark.proof])
        for number, edit in enumerate(EDITS)
    ],
)
def test_an_edit_is_judged_as_it_turns_out(edit: Edit, tmp_path, spark, run_once, start_engine, monkeypatch):
    root = project(tmp_path / "edited", edit.before)
    feed(root, FIRST)
    assert outcome(run_once, root)
    project(root, edit.after)
    reload_modules(spark, root, edit.after)
    (planned,) = plan(root, (), None, start_engine).queries
    may_start = planned.verdict in ("resume", "warn")
    if edit.before == edit.after:
        assert not planned.findings
    if edit.truth == "breaks":
        assert not may_start, planned
        assert not outcome(run_once, root), "a run refuses what the plan refuses"
    else:
        assert may_start, planned
    (fast,) = plan(root, (), None, None).queries
    told = fast.stops or "PLAN027" in {finding.code for finding in fast.findings}
    if edit.truth == "breaks":
        assert told or planned.verdict == "refuse", fast  # what a sink refuses, only the sink knows
    else:
        assert not fast.stops, fast

    feed(root, SECOND)
    monkeypatch.setattr(ready, "plan_query", lambda *given: QueryPlan("p", "q"))
    ran = outcome(run_once, root)
    same = ran and written(spark, root) == fresh(spark, run_once, tmp_path / "fresh", edit.after)
    if edit.truth == "from_here":
        assert ran
    else:
        assert same == (edit.truth == "same"), "what is said to be true of the edit is not what Spark does"
