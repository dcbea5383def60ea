"""What is decided after each event: no JVM, no clock, no chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.facts.failure import Failure, Kind
from penstock.facts.observed import ProgressFacts
from penstock.problems import Problem
from penstock.query.restarts import Policy
from penstock.supervise import events
from penstock.supervise.attempts import Attempts, after
from penstock.supervise.decide import Decision, GoOn, Restart, StopPipeline, StopQuery, decide
from penstock.supervise.query_view import QueryView, fold

VIEW = QueryView("orders", "revenue", "id", "exactly-once")
POLICY = Policy()


class Query:
    """Folds events as the supervisor does, and decides after each."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.policy, self.view, self.attempts, self.now = policy, VIEW, Attempts(), 1_000.0
        self.started()

    def started(self) -> None:
        self._take(events.QueryStarted(**self._of, id="id", run="run", promise="exactly-once"))

    def fails(self, kind: Kind = "worker_died", cause: str = "gone", batch: int | None = 7, **given) -> Decision:
        """Fails, and is restarted where that is decided."""
        failure = Failure(kind, Problem("RUN001", f"query `revenue` failed: {cause}", "fix it"), cause, batch)
        return self._acted(events.Failed(**self._of, failure=failure, **given))

    def is_refreshed(self) -> Decision:
        return self._acted(events.RefreshDue(**self._of, source="cities"))

    def commits(self, batch: int = 7, **given) -> Decision:
        progress = ProgressFacts("revenue", batch, "", 10, 10, 0.0, 0.0, 100, None, 0, None, **given)
        return self._take(events.BatchDone(**self._of, progress=progress))

    def idles(self) -> None:
        self._take(events.Idle(**self._of))

    @property
    def _of(self):
        return {"pipeline": "orders", "query": "revenue", "at": self.now}

    def _acted(self, event: events.Event) -> Decision:
        decision = self._take(event)
        if isinstance(decision, Restart):
            given = {"reason": decision.reason, "delay_seconds": decision.delay_seconds, "planned": decision.planned}
            self._take(events.Restarting(**self._of, number=self.attempts.made + 1, **given))
            self.now += decision.delay_seconds
            self.started()
        return decision

    def _take(self, event: events.Event) -> Decision:
        self.view, self.attempts = fold(self.view, event), after(self.attempts, event, self.policy.quiet_seconds)
        return decide(self.view, event, self.attempts, self.policy, 0.5)


@pytest.mark.parametrize("kind", ["bad_record", "data_loss", "checkpoint", "user_code", "damaged_file", "other"])
def test_what_will_not_pass_stops_at_once(kind):
    decision = Query().fails(kind, "broken")
    assert isinstance(decision, StopPipeline)
    assert decision.problem.message == "query `revenue` failed: broken"


@pytest.mark.parametrize("kind", ["source_away", "sink_away", "worker_died", "out_of_memory", "disk_full"])
def test_what_may_pass_is_restarted(kind):
    assert isinstance(Query().fails(kind), Restart)


def test_delays_double_up_to_the_longest_and_vary_by_a_quarter():
    query = Query(replace(POLICY, first_delay_seconds=1, longest_delay_seconds=10))
    delays = [query.fails("sink_away").delay_seconds for _ in range(6)]
    assert delays == [1, 2, 4, 8, 10, 10]
    spread = {decide(VIEW, _failed(), Attempts(), POLICY, random).delay_seconds for random in (0.0, 0.5, 1.0)}
    assert spread == {0.75, 1.0, 1.25}


def test_a_query_gives_up_after_the_most_restarts_and_says_how_often_over_how_long():
    query = Query(replace(POLICY, most=3))
    decisions = [query.fails("sink_away", "refused") for _ in range(4)]
    assert [type(one) for one in decisions] == [Restart, Restart, Restart, StopPipeline]
    assert decisions[-1].problem.message == "query `revenue` failed: refused. Penstock restarted it 3 times in 7.0 s"


def test_no_restart_where_none_is_allowed():
    assert isinstance(Query(replace(POLICY, most=0)).fails(), StopPipeline)


def test_on_failure_decides_what_else_stops():
    assert isinstance(Query(replace(POLICY, on_failure="stop_query")).fails("other"), StopQuery)


def test_a_quiet_time_clears_the_count():
    query = Query(replace(POLICY, most=2, quiet_seconds=600))
    query.fails("sink_away")
    query.fails("sink_away")
    query.now += 599
    query.commits(8)
    query.now += 1
    assert query.fails("sink_away").delay_seconds == 1


def test_a_long_delay_is_not_a_quiet_time():
    policy = replace(POLICY, most=100, first_delay_seconds=3_600, longest_delay_seconds=7_200, quiet_seconds=600)
    query = Query(policy)
    assert [query.fails("sink_away").delay_seconds for _ in range(3)] == [3_600, 7_200, 7_200]


def test_progress_alone_does_not_clear_the_count_of_failures():
    query = Query(replace(POLICY, most=3))
    for batch in range(3):
        assert isinstance(query.fails(batch=batch), Restart)
        query.commits(batch)
    assert isinstance(query.fails(batch=3), StopPipeline)


def test_the_same_batch_failing_three_times_in_the_same_way_is_a_poison_batch():
    query = Query()
    offsets = {"orders": "orders-0 from 120 to 240"}
    assert isinstance(query.fails(offsets=offsets), Restart)
    assert isinstance(query.fails(cause="another", offsets=offsets), Restart)
    assert isinstance(query.fails(offsets=offsets), Restart)
    decision = query.fails(offsets=offsets)
    assert isinstance(decision, StopPipeline)
    assert decision.problem.code == "RUN003"
    said = "query `revenue`: batch 7 failed 3 times in the same way: gone; orders reads orders-0 from 120 to 240"
    assert decision.problem.message == said


def test_batches_that_get_through_in_between_are_not_poison():
    query = Query()
    for _ in range(5):
        assert isinstance(query.fails(), Restart)
        query.commits()


@pytest.mark.parametrize("kind", ["source_away", "sink_away", "disk_full"])
def test_an_absence_is_never_a_poison_batch(kind):
    query = Query()
    assert all(isinstance(query.fails(kind), Restart) for _ in range(10))
    assert isinstance(query.fails(kind), StopPipeline)


def test_a_refresh_each_minute_goes_on_for_years():
    query = Query(replace(POLICY, most=3))
    for _ in range(10_000):
        query.now += 60
        assert query.is_refreshed() == Restart(0.0, "`cities` is refreshed", planned=True)
        query.idles()
    assert query.attempts.made == 10_000


def test_refreshes_between_failures_do_not_disturb_the_quiet_time():
    query = Query(replace(POLICY, most=2))
    for _ in range(10):
        assert isinstance(query.fails("sink_away"), Restart)
        for _ in range(11):
            query.now += 60
            query.is_refreshed()
            query.commits()


def test_a_restart_for_a_new_schema_does_not_wait_and_the_next_one_does():
    query = Query(replace(POLICY, most=4))
    decisions = [query.fails("new_columns", f"column {number}", adapted="events") for number in range(5)]
    assert [getattr(one, "delay_seconds", None) for one in decisions] == [0, 1, 2, 4, None]
    assert isinstance(decisions[-1], StopPipeline)
    assert "Penstock restarted it 4 times in 7.0 s" in decisions[-1].problem.message


def test_new_schemas_that_get_through_can_follow_each_other():
    query = Query(replace(POLICY, most=2))
    for batch in range(20):
        assert query.fails("new_columns", f"column {batch}", batch, adapted="events").delay_seconds == 0
        query.commits(batch)


def test_every_batch_is_judged_by_its_share_of_bad_rows():
    query = Query(replace(POLICY, max_bad_share=0.1))
    assert query.commits(1, checks={"orders": {"rows": 10, "refused": 1}}) == GoOn()
    decision = query.commits(2, checks={"orders": {"rows": 10, "refused": 2}})
    assert isinstance(decision, StopPipeline)
    assert decision.problem.code == "RECORD002"
    assert "20.0% of the rows of batch 2" in decision.problem.message


def _failed() -> events.Failed:
    failure = Failure("sink_away", Problem("RUN001", "away", "wait"), "refused", 1)
    return events.Failed(pipeline="orders", query="revenue", at=0.0, failure=failure)
