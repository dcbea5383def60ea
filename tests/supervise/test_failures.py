"""Runs that fail: the Problem names the root cause and the place, and keeps the code and the fix of who raised it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import Pipeline, sinks, sources
from penstock.problems import UserError, errors_in
from tests.conftest import place

pytestmark = pytest.mark.spark

NUMBERS = """
    pipeline: copy
    sources: {lines: {type: files, path: in, format: text}}
    steps: {numbers: {sql: "SELECT CAST(value AS INT) AS number FROM lines"}}
    sinks: {out: {of: numbers, type: spark, format: noop}}
"""
SAVED = """
    pipeline: copy
    sources: {lines: {type: files, path: in, format: {type: csv, schema: "id BIGINT"}}}
    sinks: {out: {of: lines, type: python, each_batch: "saving:save"}}
"""
SAVE = """
import pathlib

def save(rows, batch):
    taken = [str(row.id) for row in rows.collect()]
    with (pathlib.Path(__file__).parent / "saved.txt").open("a") as file:
        file.write("".join(f"{one}\\n" for one in taken))
"""


def checkpoint_of(root: Path, query: str) -> Path:
    return root / "storage/checkpoints/copy" / query / "0001"


def test_a_value_that_quotes_a_mark_of_ours_is_told_as_a_value(project_at, run_once):
    root = project_at(NUMBERS, files={"in/a.txt": 'penstock:bad-record:{"node":"x"}\n'})
    (problem,) = errors_in(run_once(root).problems)
    assert problem.code == "FAILURE010"
    assert '\'penstock:bad-record:{"node":"x"}\'' in problem.message
    assert (problem.where.line, "try_cast" in problem.fix) == (3, True)


def refused(run_once, root):
    """Why a run does not start."""
    with pytest.raises(UserError) as raised:
        run_once(root)
    return raised.value.problems


def test_an_empty_newest_offsets_file_is_named(project_at, run_once):
    root = project_at(NUMBERS, files={"in/a.txt": "1\n"})
    assert run_once(root).ok
    damaged = checkpoint_of(root, "numbers") / "offsets/0"
    damaged.write_text("")
    (damaged.parent / ".0.crc").unlink(missing_ok=True)
    place(root / "in/b.txt", "2\n")
    (problem,) = refused(run_once, root)
    assert problem.code == "CHECKPOINT010"
    assert str(damaged) in problem.message
    assert "penstock checkpoint reset" in problem.fix


def test_the_ledger_keeps_its_code_and_is_not_believed_when_it_is_ahead(project_at, run_once):
    root = project_at(SAVED, files={"in/a.csv": "1\n", "saving.py": SAVE})
    assert run_once(root).ok
    note = checkpoint_of(root, "lines") / "ledger/out.json"
    place(root / "in/b.csv", "2\n")
    whole = json.loads(note.read_text())
    note.write_text(json.dumps(whole | {"batch": 7}))
    (ahead,) = refused(run_once, root)
    assert ahead.code == "LEDGER002"
    assert "has batch 7, and its checkpoint ends with batch 0" in ahead.message
    note.write_text("{")
    (spoiled,) = refused(run_once, root)
    assert (spoiled.code, spoiled.where.line) == ("LEDGER001", 3)
    assert (root / "saved.txt").read_text() == "1\n"
    note.write_text(json.dumps(whole))
    assert run_once(root).ok
    assert (root / "saved.txt").read_text() == "1\n2\n"


def test_a_bad_record_is_told_as_one_although_a_function_of_the_users_met_it(project_at, run_once):
    root = project_at(SAVED, files={"in/a.csv": "1\nmany\n", "saving.py": SAVE})
    (problem,) = errors_in(run_once(root).problems)
    assert problem.code == "RECORD001"
    assert "`lines` has a bad record" in problem.message
    assert "many" in problem.message


def test_a_refused_connection_is_no_death_of_spark(tmp_path, engine):
    place(tmp_path / "in/1.txt", "a\n")
    pipeline = Pipeline("away", latency="low")
    pipeline.source("lines", sources.Files(path="in", format="text"))
    pipeline.sink("table", sinks.Memory(), of="lines")
    with pipeline.start(project=tmp_path, once=True) as handle:
        assert handle.await_termination(60)
        query = handle.queries["lines"]
        query.fail_with(ConnectionRefusedError(111, "Connection refused"))
    assert query.failure.kind == "source_away"
    assert query.failure.may_pass
    assert query.failure.problem.code == "FAILURE005"
