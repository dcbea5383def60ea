"""Pipelines in Python: the handle on what runs, and memory sinks read back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock import Pipeline, sinks, sources
from penstock.problems import UserError
from tests.conftest import place

pytestmark = pytest.mark.spark


def counting(folder: Path, **query: str) -> Pipeline:
    pipeline = Pipeline("counting", latency="low")
    pipeline.source("lines", sources.Files(path=str(folder), format="text"))

    @pipeline.step()
    def counts(lines):
        return lines.groupBy("value").count()

    pipeline.sink("table", sinks.Memory(), of="counts")
    pipeline.query("counts", **query)
    return pipeline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place(tmp_path / "in" / "1.txt", "a\nb\na\n")
    return tmp_path / "in"


@pytest.mark.covers("operation.aggregate", "operation.plan", "query.identity", "query.explain", "query.progress")
def test_a_handle_tells_all_about_its_query(folder, tmp_path, engine):
    with counting(folder, mode="complete").start(project=tmp_path, once=True) as handle:
        assert handle.await_termination(60)
        query = handle.queries["counts"]
        assert not query.is_active
        assert len(query.id) == len(query.run_id) == 36
        assert query.name == "counts"
        assert query.last_progress["numInputRows"] == query.recent_progress[0]["numInputRows"] == 3
        assert query.status["isTriggerActive"] is False
        assert query.exception is None
        assert "Aggregate" in query.explain()
        assert sorted(map(tuple, handle.table("table").collect())) == [("a", 2), ("b", 1)]


@pytest.mark.covers("sink.memory", "trigger.default", "query.stop")
@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_memory_sink_grows_while_the_query_runs(mode, folder, tmp_path, engine):
    with counting(folder, mode=mode).start(project=tmp_path) as handle:
        assert handle.is_active
        assert not handle.await_termination(1)
        query = handle.queries["counts"]
        _wait_for(lambda: query.last_progress and handle.table("table").count() == 2, handle)
        place(folder / "2.txt", "c\n")
        _wait_for(lambda: ("c", 1) in map(tuple, handle.table("table").collect()), handle)
    assert not handle.is_active


def test_each_start_of_a_memory_sink_begins_anew(folder, tmp_path, engine):
    for _ in range(2):
        with counting(folder, mode="complete").start(project=tmp_path, once=True) as handle:
            handle.await_termination(60)
            assert handle.table("table").count() == 2
    assert not (tmp_path / "storage" / "checkpoints").exists()


def test_a_mistake_is_raised_before_anything_starts(folder, tmp_path, engine):
    with pytest.raises(UserError) as refused:
        counting(folder, mode="append").start(project=tmp_path)
    assert [problem.code for problem in refused.value.problems] == ["MODE001"]
    assert refused.value.problems[0].where.file.endswith("test_api.py")


def test_a_step_that_raises_is_told_at_its_line(folder, tmp_path, engine):
    pipeline = Pipeline("raising")
    pipeline.source("lines", sources.Files(path=str(folder), format="text"))

    @pipeline.step()
    def broken(lines):
        return lines.select("no_such_column")

    pipeline.sink("table", sinks.Memory(), of="broken")
    with pytest.raises(UserError) as refused:
        pipeline.start(project=tmp_path)
    problem = refused.value.problems[0]
    assert problem.code == "SPARK002"
    assert "no_such_column" in problem.message
    assert (
        Path(__file__).read_text().splitlines()[problem.where.line - 1].strip()
        == 'return lines.select("no_such_column")'
    )


@pytest.mark.covers("query.exception")
def test_a_failed_query_is_told_by_the_handle(tmp_path, engine):
    place(tmp_path / "in" / "1.txt", "not a number\n")
    pipeline = Pipeline("failing", latency="low")
    pipeline.source("lines", sources.Files(path="in", format="text"))
    pipeline.sql("numbers", "SELECT CAST(value AS INT) AS number FROM lines")
    pipeline.sink("table", sinks.Memory(), of="numbers")
    with pipeline.start(project=tmp_path) as handle:
        with pytest.raises(UserError) as failed:
            handle.await_termination(60)
        assert failed.value.problems[0].code == "FAILURE010"
        assert handle.queries["numbers"].exception is not None


def test_a_pipeline_runs_once_at_a_time(folder, tmp_path, engine):
    with counting(folder, mode="complete").start(project=tmp_path):
        with pytest.raises(UserError) as refused:
            counting(folder, mode="complete").start(project=tmp_path)
        assert [problem.code for problem in refused.value.problems] == ["CHECKPOINT003"]


def _wait_for(condition, handle, seconds: float = 300) -> None:
    import time

    deadline = time.monotonic() + seconds
    while not condition():
        assert handle.is_active, [query.exception for query in handle.queries.values()]
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.1)


@pytest.mark.covers("query.several")
def test_a_failure_is_told_while_another_query_runs_on(tmp_path, engine):
    place(tmp_path / "in" / "1.txt", "not a number\n")
    pipeline = Pipeline("mixed", latency="low")
    pipeline.source("ticks", sources.Rate())
    pipeline.source("lines", sources.Files(path="in", format="text"))
    pipeline.sql("numbers", "SELECT CAST(value AS INT) AS number FROM lines")
    pipeline.sink("seen", sinks.Memory(), of="ticks")
    pipeline.sink("cast", sinks.Memory(), of="numbers")
    with pipeline.start(project=tmp_path) as handle:
        with pytest.raises(UserError):
            handle.await_termination(60)
        assert handle.queries["ticks"].is_active


def test_a_pipeline_is_checked_and_its_rows_are_shown_before_it_starts(folder, tmp_path, engine):
    checked = counting(folder, mode="complete").check(project=tmp_path)
    assert checked.ok, checked
    assert not checked.fast
    refused = counting(folder, mode="append").check(project=tmp_path)
    assert [problem.code for problem in refused.problems] == ["MODE001"]
    rows = counting(folder, mode="complete").show("counts", limit=1, project=tmp_path)
    assert (list(rows.columns), len(rows)) == (["value", "count"], 1)
    assert str(rows["count"].dtype) == "Int64"
    with pytest.raises(UserError) as unknown:
        counting(folder).show("cuonts", project=tmp_path)
    assert "did you mean `counts`" in str(unknown.value)
    assert not (tmp_path / "storage").exists()


def test_one_query_is_stopped_and_the_others_run_on(folder, tmp_path, engine, capsys):
    pipeline = counting(folder, mode="complete")
    pipeline.source("ticks", sources.Rate())
    pipeline.sink("seen", sinks.Memory(), of="ticks")
    with pipeline.start(project=tmp_path, progress=True) as handle:
        _wait_for(lambda: handle.queries["counts"].last_progress, handle)
        handle.stop("counts")
        states = {view.name: view.state for view in handle.snapshot.queries}
        assert states["counts"] == "stopped"
        assert states["ticks"] in ("running", "waiting")
        assert not handle.queries["counts"].is_active
        assert handle.is_active
        assert "■ counting.counts stopped" in repr(handle)
        assert "■ stopped" in handle._repr_html_()
        with pytest.raises(KeyError):
            handle.stop("no_such_query")
    printed = capsys.readouterr()
    assert "counting.counts started · none" in printed.err
    assert "counting.counts batch 0 · 3 rows in" in printed.err
    assert printed.out == ""


def test_a_handle_is_awaited_while_other_coroutines_run(folder, tmp_path, engine):
    async def awaited() -> tuple[bool, bool, int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.01)

        task = asyncio.create_task(other())
        with counting(folder, mode="complete").start(project=tmp_path, once=True) as handle:
            early, late = await handle.wait(0.0), await handle
            task.cancel()
            return early, late, turns

    early, late, turns = asyncio.run(awaited())
    assert (early, late) == (False, True)
    assert turns > 1


def test_what_an_awaited_query_fails_with_is_raised(tmp_path, engine):
    place(tmp_path / "in" / "1.txt", "not a number\n")
    pipeline = Pipeline("failing", latency="low")
    pipeline.source("lines", sources.Files(path="in", format="text"))
    pipeline.sql("numbers", "SELECT CAST(value AS INT) AS number FROM lines")
    pipeline.sink("table", sinks.Memory(), of="numbers")

    async def awaited() -> None:
        with pipeline.start(project=tmp_path) as handle:
            await handle

    with pytest.raises(UserError) as failed:
        asyncio.run(awaited())
    assert [problem.code for problem in failed.value.problems] == ["FAILURE010"]
