"""Cores that queries hold for as long as they run."""

from __future__ import annotations

import pytest

from penstock.actions.check import check
from penstock.checks.slots import Held
from penstock.prepare.cores import too_few
from penstock.problems import UserError, Where, errors_in

HERE = Where("p.yaml", 3, 1)


@pytest.mark.parametrize(
    ("held", "cores", "said"),
    [
        ([], 1, None),
        ([0, 0, 0], 1, None),
        ([1, 1], 2, None),
        ([1, 1, 1], 2, "3 cores are needed, and there are 2"),
        ([2, 0], 3, None),
        ([2, 0], 2, "the others need one to take turns on"),
        ([4], 2, "`q0` 4"),
    ],
)
def test_all_queries_of_a_process_count(held: list[int], cores: int, said: str | None) -> None:
    found = list(too_few([Held(f"q{number}", one, HERE) for number, one in enumerate(held)], cores))
    assert bool(found) == bool(said)
    for problem in found:
        assert problem.code == "REALTIME008"
        assert said in f"{problem.message}"
        assert problem.where == HERE


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.covers("continuous.slots")
@pytest.mark.parametrize(
    ("how", "place"),
    [("latency: realtime", (2, 10)), ("queries: {orders: {trigger: {continuous: 1 second}}}", (2, 29))],
    ids=["real time", "continuous"],
)
def test_the_partitions_of_a_topic_are_asked_for(project_at, start_engine, run_once, kafka, topic, how, place):
    text = f"""
    pipeline: wide
    {how}
    sources: {{orders: {{type: kafka, servers: "{kafka.servers}", topics: [{topic(partitions=9)}], format: raw}}}}
    sinks: {{out: {{of: orders, type: kafka, servers: "{kafka.servers}", topic: {topic()}}}}}
    """
    root = project_at(text)
    (problem,) = errors_in(check(root, (), None, start_engine).problems)
    assert problem.code == "REALTIME008"
    assert "9 cores are needed, and there are 2" in problem.message
    assert (problem.where.line, problem.where.column) == place
    assert run_once(root).ok, "taken in batches, as --once does, it needs no more than others"
    with pytest.raises(UserError, match="REALTIME008"):
        run_once(root, once=False, for_seconds=5)
