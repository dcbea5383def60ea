"""Rows kept in the driver's memory, through the Python API."""

from __future__ import annotations

import pytest

from penstock import Pipeline, sinks, sources
from penstock.problems import UserError
from tests.sources.test_files import files_in

pytestmark = pytest.mark.spark


def counts(mode: str) -> Pipeline:
    pipeline = Pipeline("counted", latency="low")
    pipeline.source("lines", sources.Files(path="in", format="text", max_files_per_trigger=1))
    pipeline.sql("counts", "SELECT count(*) AS lines FROM lines")
    pipeline.sink("held", sinks.Memory(), of="counts")
    pipeline.query("counts", mode=mode)
    return pipeline


@pytest.mark.covers("model.update", "model.complete", "sink.memory")
@pytest.mark.parametrize(("mode", "held"), [("complete", [2]), ("update", [1, 2])])
def test_an_aggregation_is_held_whole_or_as_it_changed(engine, tmp_path, mode, held):
    files_in(tmp_path / "in", "a", "b")
    with counts(mode).start(project=tmp_path, once=True) as handle:
        assert handle.await_termination(60)
        assert sorted(row.lines for row in handle.table("held").collect()) == held


@pytest.mark.covers("mode.matrix")
def test_an_aggregation_without_a_watermark_is_refused_in_append_mode(engine, tmp_path):
    files_in(tmp_path / "in", "a")
    with pytest.raises(UserError) as refused:
        counts("append").start(project=tmp_path, once=True)
    assert [problem.code for problem in refused.value.problems] == ["MODE001"]


@pytest.mark.covers("sink.memory", "model.append")
def test_rows_are_appended_and_each_start_begins_anew(engine, tmp_path):
    files_in(tmp_path / "in", "a", "b")
    pipeline = Pipeline("kept", latency="low")
    pipeline.source("lines", sources.Files(path="in", format="text"))
    pipeline.sink("held", sinks.Memory(), of="lines")
    for _ in range(2):
        with pipeline.start(project=tmp_path, once=True) as handle:
            assert handle.await_termination(60)
            assert handle.queries["lines"].guarantee.promise == "none"
            assert sorted(row.value for row in handle.table("held").collect()) == ["a", "b"]
