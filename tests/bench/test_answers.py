"""When a record is answered, and whether a result is the right one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.answers import Received, Waiting, digest, expected
from penstock.bench.generate import Schedule, waiting_records
from penstock.bench.workloads import keyed_count, stateless
from penstock.bench.workloads.workload import Answer, fields_of

OUTCOMES = st.lists(st.builds(Answer, st.sampled_from("abc"), st.integers(0, 3), st.sampled_from("xy")), max_size=20)


def test_an_output_answers_all_versions_up_to_its_own():
    wanted = [(0, Answer("a", 1, "")), (1, Answer("b", 1, "")), (2, Answer("a", 2, "")), (3, Answer("a", 3, ""))]
    waiting = Waiting(wanted)
    assert waiting.take([Received(10, Answer("a", 2, ""))]) == {0: 10, 2: 10}
    assert waiting.left == 2
    assert waiting.take([Received(20, Answer("a", 2, "")), Received(30, Answer("a", 3, ""))]) == {3: 30}
    assert waiting.take([Received(40, Answer("never asked", 1, ""))]) == {}
    assert waiting.left == 1


def test_what_is_expected_later_comes_after_the_rest():
    waiting = Waiting([(0, Answer("a", 1, ""))])
    waiting.expect([(1, Answer("a", 2, "")), (2, Answer("b", 1, ""))])
    assert waiting.left == 3
    assert waiting.take([Received(10, Answer("a", 1, ""))]) == {0: 10}
    assert waiting.take([Received(20, Answer("a", 2, "")), Received(30, Answer("b", 1, ""))]) == {1: 20, 2: 30}


def test_a_model_goes_on_where_it_was():
    records, step = list(waiting_records(keyed_count.WORKLOAD, 2_500)), keyed_count.WORKLOAD.model()
    parts = [expected(keyed_count.WORKLOAD, part, step) for part in (records[:1_200], records[1_200:])]
    whole = expected(keyed_count.WORKLOAD, records)
    assert [outcome for part in parts for _, outcome in part] == [outcome for _, outcome in whole]


@given(OUTCOMES, st.randoms())
def test_a_digest_knows_neither_order_nor_repeats(outcomes, random):
    mixed = outcomes + outcomes[: len(outcomes) // 2]
    random.shuffle(mixed)
    assert digest(mixed) == digest(outcomes)


def test_a_digest_is_of_the_newest_versions():
    old, new, other = Answer("a", 1, "x"), Answer("a", 2, "y"), Answer("a", 2, "z")
    assert digest([old, new]) == digest([new])
    assert digest([new]) != digest([other])
    assert digest([new, other]) not in {digest([new]), digest([other])}, "a wrong row hides behind a right one"
    assert digest([old]) != digest([])


def test_some_records_have_no_answer():
    wanted = expected(stateless.WORKLOAD, waiting_records(stateless.WORKLOAD, 1_000))
    numbers = [number for number, _ in wanted]
    assert len(numbers) == 900
    assert numbers[0] == 0, "the first record tells when a contender is up"


def test_each_payment_has_an_answer_of_its_own():
    wanted = expected(keyed_count.WORKLOAD, waiting_records(keyed_count.WORKLOAD, 2_500))
    assert [number for number, _ in wanted] == list(range(2_500))
    assert max(outcome.version for _, outcome in wanted) == 3


def test_records_are_due_at_their_time_whatever_happens():
    schedule = Schedule("stateless", "", "", first=5, backlog=1, start=1_000_000, rate=1_000, count=3)
    assert [schedule.due(number) for number in range(4)] == [5, 1_000_000, 1_001_000, 1_002_000]
    assert schedule.end == 1_002_000
    records = list(schedule.records(stateless.WORKLOAD))
    assert [fields_of(record.value)["sent"] for record in records] == [5, 1_000_000, 1_001_000, 1_002_000]
