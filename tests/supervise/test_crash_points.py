"""Crash points in this process: a crash is an exception here, and the next run resumes.

`tests/cli/test_crash_points.py` crashes whole processes, at the points of several sinks and of asynchronous progress.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count

import pytest

from penstock import crash_points
from penstock.actions.dead_letters import show_letters
from penstock.actions.run import RunResult
from penstock.crash_points import Chosen
from penstock.dead_letters.letters import LetterFilter
from penstock.problems import UserError
from tests.cli.test_crash_points import OF_ORDERS, written_by_db, written_by_lake
from tests.conftest import place
from tests.http_service import serving
from tests.kills import written
from tests.sources.conftest import wait_for

pytestmark = pytest.mark.spark

COPY = """
pipeline: copy
latency: low
sources: {numbers: {type: files, path: in, format: {type: json, schema: 'id BIGINT'}, max_files_per_trigger: 1}}
sinks: {out: {of: numbers, SINK}}
"""


TWO_SINKS = """
pipeline: two
latency: low
sources: {numbers: {type: files, path: in, format: {type: json, schema: 'id BIGINT'}}}
sinks:
  lake: {of: numbers, type: delta, path: out}
  db: {of: numbers, type: postgres, url: "${PG_URL}", table: numbers, create_table: true}
"""


class Crashed(ConnectionError):
    """As if everything were gone."""


@pytest.fixture
def crash_at(monkeypatch) -> Callable[..., None]:
    """Lets a point raise; `then` is called first."""

    def chosen(point: str | None, then: Callable[[], object] = lambda: None, turn: int = 1) -> None:
        def crash() -> None:
            then()
            raise Crashed(point)

        monkeypatch.setattr(crash_points, "chosen", lambda: Chosen(point, turn) if point else None)
        monkeypatch.setattr(crash_points, "crash", crash)
        monkeypatch.setattr(crash_points, "_turns", count(1))

    return chosen


def codes(run: Callable[..., RunResult], *given: object) -> list[str]:
    try:
        return [problem.code for problem in run(*given).problems]
    except UserError as error:
        return [problem.code for problem in error.problems]


@pytest.mark.parametrize("point", ["after_offset_log", "before_commit_log"])
@pytest.mark.parametrize("sink", ["type: files, path: out, format: json", "type: delta, path: out"])
def test_what_spark_writes_by_itself_is_stopped_where_it_should_be(project_at, running, crash_at, sink, point):
    root = project_at(COPY.replace("SINK", sink))
    checkpoint, seen = root / "storage/checkpoints/copy/numbers/0001", []

    def look() -> None:
        offsets, commits = (max(written(checkpoint, log), default=-1) for log in ("offsets", "commits"))
        logs = (
            (root / "out/_spark_metadata" / str(offsets)).exists(),
            [
                note["txn"]["version"]
                for log in sorted((root / "out/_delta_log").glob("*.json"))
                for line in log.read_text().splitlines()
                if "txn" in (note := json.loads(line))
            ],
        )
        seen.append((offsets, commits, logs[0] or offsets in logs[1]))

    crash_at(point, look)
    numbers = count()
    place(root / "in/start.json", '{"id": -1}\n')

    def crashed() -> bool:
        number = next(numbers)
        place(root / f"in/{number}.json", f'{{"id": {number}}}\n')
        return bool(seen)

    with running(root):
        wait_for(crashed)
    ((offsets, commits, is_in_the_sink),) = seen
    assert offsets == commits + 1
    assert is_in_the_sink or point == "after_offset_log"


@pytest.mark.services
def test_a_crash_before_between_and_after_the_commits_of_two_sinks_loses_and_repeats_nothing(
    project_at, run_once, crash_at, spark, postgres, pg, monkeypatch
):
    pg.execute("DROP SCHEMA IF EXISTS penstock_ledger CASCADE")
    monkeypatch.setenv("PG_URL", postgres.url)
    root = project_at(TWO_SINKS, settings="name: test\nsecrets: [PG_URL]\n")
    checkpoint = root / "storage/checkpoints/two/numbers/0001"
    points = [point for point in OF_ORDERS if point != "in_task"]  # a task is no part of this process
    for number, point in enumerate(points):
        place(root / f"in/{number}.json", f'{{"id": {number}}}\n')
        asked = crash_points.parse(point)
        crash_at(asked.point, turn=asked.turn)
        assert codes(run_once, root) in (["RUN001"], ["FAILURE006"]), point
        lost = max(written(checkpoint, "offsets"))
        assert max(written(checkpoint, "commits"), default=-1) == lost - 1, point
        has = (written_by_lake(root / "out"), written_by_db(pg))
        assert has == tuple(lost if one else lost - 1 for one in OF_ORDERS[point]), point
    crash_at(None)
    assert codes(run_once, root) == []
    in_lake = [row.id for row in spark.read.format("delta").load(str(root / "out")).collect()]
    in_db = [row[0] for row in pg.execute("SELECT id FROM numbers").fetchall()]
    assert sorted(in_lake) == sorted(in_db) == list(range(len(points)))


def test_a_crash_after_dead_letters_repeats_none_of_them(project_at, run_once, crash_at, start_engine):
    with serving() as service:
        service.answer = lambda seen: (400 if seen.json["id"] == 2 else 200, {}, "")
        root = project_at(COPY.replace("SINK", f"type: http, url: '{service.url}'"))
        place(root / "in/1.json", "".join(f'{{"id": {number}}}\n' for number in range(5)))
        crash_at("after_dead_letters")
        assert codes(run_once, root) == ["FAILURE006"]
        crash_at(None)
        assert codes(run_once, root) == []
        assert sorted({(seen.json["id"], seen.key) for seen in service.seen})[-1][0] == 4
        assert len({seen.key for seen in service.seen}) == 5, "a record has the same key when it is sent again"
    letters = show_letters(root, (), None, LetterFilter(), None, start_engine).letters
    assert [json.loads(one.letter.raw)["id"] for one in letters] == [2]


def test_a_crash_after_a_new_version_of_a_schema_loses_nothing(project_at, run_once, crash_at, spark):
    text = """
    pipeline: grows
    sources: {orders: {type: files, path: in, format: json, on_new_columns: add}}
    sinks: {out: {of: orders, type: delta, path: out, merge_schema: true}}
    """
    root = project_at(text, files={"in/1.json": '{"id": 1}\n'})
    assert codes(run_once, root) == []
    place(root / "in/2.json", '{"id": 2, "city": "Oslo"}\n')
    crash_at("after_schema_version")
    assert codes(run_once, root) == ["FAILURE006"]
    crash_at(None)
    assert codes(run_once, root) == []
    rows = spark.read.format("delta").load(str(root / "out")).collect()
    assert sorted((row.id, row.city) for row in rows if row.city) == [(2, "Oslo")]
    assert sorted(row.id for row in rows) == [1, 2]


def test_a_crash_in_a_replay_sends_nothing_twice(project_at, run_once, crash_at, start_engine):
    from penstock.dead_letters.replay.planning import ReplayOptions
    from tests.actions.test_dead_letters import JSON, replay_letters, statuses

    root = project_at(JSON, files={"in/a.json": '{"id": 1, "amount": -1}\n'})
    run_once(root)

    def replay():
        return replay_letters(root, (), None, LetterFilter(), ReplayOptions(), start_engine)

    crash_at("during_replay")
    with pytest.raises(Crashed):
        replay()
    crash_at(None)
    assert statuses(replay()) == {"sent before": 1}
