"""Rows printed in the terminal."""

from __future__ import annotations

import time

import pytest

from penstock.actions.run import RunOptions, RunResult, run
from penstock.supervise.stopping import Stop

pytestmark = pytest.mark.spark

SHOWN = """
    pipeline: shown
    latency: low
    sources: {lines: {type: files, path: in, format: text, max_files_per_trigger: 1}}
    sinks: {out: {of: lines, type: console, num_rows: 2, truncate: false}}
"""


def run_shown(root, start_engine, on_console) -> RunResult:
    return run(root, (), None, RunOptions(once=True), start_engine, Stop(), lambda snapshot: None, on_console)


@pytest.mark.covers("sink.console")
def test_every_batch_reaches_the_terminal(project_at, start_engine):
    root = project_at(SHOWN, files={"in/1": "a\nb\nc\n", "in/2": "ä quite long line that is not cut\n"})
    lines: list[str] = []
    result = run_shown(root, start_engine, lines.append)
    assert result.ok
    assert result.queries[0].promise == "none"
    assert [line for line in lines if line.startswith("Batch")] == ["Batch: 0", "Batch: 1"]
    assert "only showing top 2 rows" in lines
    assert "|ä quite long line that is not cut|" in lines


def test_a_run_ends_only_when_a_slow_terminal_has_shown_everything(project_at, start_engine):
    lines: list[str] = []

    def slowly(line: str) -> None:
        time.sleep(0.1)
        lines.append(line)

    run_shown(project_at(SHOWN, files={"in/1": "first\nlast\n"}), start_engine, slowly)
    assert "|last |" in lines
    assert lines[-1] in ("", "+-----+")
