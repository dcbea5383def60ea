"""When a query gives up: soon, with its real cause, and without harm to other pipelines."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.cli.run import exit_code
from penstock.supervise.query_view import QueryView, Snapshot
from penstock.supervise.stopping import Stop
from tests.conftest import place
from tests.sources.conftest import wait_for

pytestmark = pytest.mark.spark

GROWS = """
pipeline: grows
sources: {orders: {type: files, path: in, format: json, on_new_columns: add}}
sinks: {out: {of: orders, SINK}}
"""


def lines(*rows: dict) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def gives_up_over_a_column(root, run_once) -> QueryView:
    assert run_once(root).ok
    place(root / "in/2.json", lines({"id": 2, "city": "Rome", "amount": 5}))
    seen: list[Snapshot] = []
    result = run_once(root, once=False, for_seconds=120, on_snapshot=seen.append)
    assert seen[-1].elapsed_seconds < 60, "it did not give up by itself"
    (problem,) = [one for one in result.problems if one.severity == "error"]
    assert "amount" in problem.message, problem
    assert exit_code(result) == 3
    return result.queries[0]


def test_a_delta_table_that_may_not_widen(project_at, run_once):
    text = GROWS.replace("SINK", "type: delta, path: out")
    root = project_at(text, files={"in/1.json": lines({"id": 1, "city": "Oslo"})})
    assert gives_up_over_a_column(root, run_once).restarts <= 1


@pytest.mark.services
def test_a_table_of_postgresql_that_may_not_widen(project_at, run_once, postgres, pg):
    pg.execute("CREATE TABLE orders (id BIGINT, city TEXT, _rescued TEXT)")
    text = GROWS.replace("SINK", f"type: postgres, url: '{postgres.url}', table: orders")
    root = project_at(text, files={"in/1.json": lines({"id": 1, "city": "Oslo"})})
    assert gives_up_over_a_column(root, run_once).restarts <= 1
    assert pg.execute("SELECT id FROM orders").fetchall() == [(1,)]


JUDGED = """
pipeline: judged
sources:
  orders: {type: files, path: in, max_files_per_trigger: 1, format: {type: csv, schema: "id BIGINT, amount INT"},
           expect: {positive: {that: amount > 0, otherwise: drop}}}
sinks: {out: {of: orders, type: files, path: out, format: json}}
queries: {orders: {max_bad_share: 0.5}}
"""


@pytest.mark.parametrize("once", [True, False])
def test_every_batch_is_judged_by_its_bad_share_also_those_of_one_look(project_at, run_once, once):
    """The bad batch is followed by good ones: a look that sees only the newest batch finds nothing wrong."""
    files = {f"in/{number}.csv": f"{number},{-1 if number == 1 else 5}\n" for number in range(4)}
    root = project_at(JUDGED, files=files)
    for number in range(4):  # Spark takes the oldest first
        os.utime(root / f"in/{number}.csv", (1_700_000_000 + number, 1_700_000_000 + number))

    def slowly(snapshot: Snapshot) -> None:
        if not snapshot.queries[0].has_ended:
            commits = root / "storage/checkpoints/judged/orders/0001/commits"
            wait_for((commits / "3").exists)  # all four are done before the next look

    result = run_once(root, once=once, for_seconds=300, on_snapshot=slowly)
    assert [problem.code for problem in result.problems] == ["RECORD002"]
    assert "of batch 1" in result.problems[0].message
    assert exit_code(result) == 3


FAILING = """
pipeline: failing
sources: {lines: {type: files, path: bad, format: text}}
steps: {numbers: {sql: "SELECT CAST(value AS INT) AS number FROM lines"}}
sinks:
  cast: {of: numbers, type: files, path: cast, format: json}
  plain: {of: lines, type: files, path: plain, format: json}
"""
RUNNING = """
pipeline: running
sources: {texts: {type: files, path: good, format: text}}
sinks: {kept: {of: texts, type: files, path: kept, format: json}}
"""


@pytest.mark.parametrize("on_failure", ["stop_pipeline", "stop_query"])
def test_a_query_that_gives_up_ends_its_pipeline_or_itself_and_never_another_pipeline(project_at, run_once, on_failure):
    files = {"bad/1.txt": "not a number\n", "good/1.txt": "a\n"}
    root = project_at(f"on_failure: {on_failure}\n{FAILING.lstrip()}", RUNNING, files=files)
    stop, seen = Stop(), list[Snapshot]()

    def views() -> dict[str, QueryView]:
        return {view.name: view for view in seen[-1].queries} if seen else {}

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(run_once, root, once=False, stop=stop, on_snapshot=seen.append)
        try:
            wait_for(lambda: run.done() or (views() and views()["numbers"].state == "failed"))
            sibling = "stopped" if on_failure == "stop_pipeline" else "waiting"
            wait_for(lambda: run.done() or views()["lines"].state == sibling)
            place(root / "good/2.txt", "b\n")
            wait_for(lambda: run.done() or views()["texts"].rows_in == 2)
            assert not run.done()
        finally:
            stop.ask()
    result = run.result()
    assert [problem.code for problem in result.problems] == ["FAILURE010"]
    states = {view.name: view.state for view in result.queries}
    assert states == {"numbers": "failed", "lines": "stopped", "texts": "stopped"}
    assert exit_code(result) == 3
