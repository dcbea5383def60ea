"""Rows printed in the terminal."""

from __future__ import annotations

import pytest

from penstock.actions.run import RunOptions, run
from penstock.supervise.loop import Stop

pytestmark = pytest.mark.spark


def test_every_line_of_every_batch_reaches_the_terminal(project_at, start_engine):
    root = project_at(
        """
        pipeline: shown
        latency: low
        sources: {lines: {type: files, path: in, format: text, max_files_per_trigger: 1}}
        sinks: {out: {of: lines, type: console, num_rows: 2, truncate: false}}
        """,
        files={"in/1": "a\nb\nc\n", "in/2": "ä quite long line that is not cut\n"},
    )
    lines: list[str] = []
    result = run(root, (), None, RunOptions(once=True), start_engine, Stop(), lambda snapshot: None, lines.append)
    assert result.ok
    assert result.queries[0].promise == "none"
    assert [line for line in lines if line.startswith("Batch")] == ["Batch: 0", "Batch: 1"]
    assert "only showing top 2 rows" in lines
    assert "|ä quite long line that is not cut|" in lines
