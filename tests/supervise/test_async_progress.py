"""`latency: low` from Kafka to Kafka: progress is written down beside the work, and every other way goes on from it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.checkpoint.gaps import missing
from penstock.problems import UserError, errors_in
from tests.kills import PENSTOCK, kill, run_to_the_end, written
from tests.services import await_rows, consume, produce

pytestmark = [pytest.mark.spark, pytest.mark.services]

PIPELINE = """\
pipeline: quick
latency: low
sources:
  orders:
    type: kafka
    servers: SERVERS
    topics: [GIVEN]
    starting: earliest
    LIMIT
    format: {type: json, schema: "id BIGINT"}
sinks: {out: {of: orders, type: kafka, servers: SERVERS, topic: TAKEN}}
"""
LIMIT = "max_offsets_per_trigger: 20"
WAYS = {
    "once": "",
    "every batch": "queries: {orders: {async_progress: false}}\n",
    "real time": "queries: {orders: {latency: realtime}}\n",
}


class Quick:
    """A pipeline with its two topics and its checkpoint."""

    def __init__(self, root: Path, servers: str, given: str, taken: str) -> None:
        self.root, self.servers, self.given, self.taken = root, servers, given, taken
        self.checkpoint = root / "storage/checkpoints/quick/orders/0001"
        self.put_in = 0

    def feed(self, count: int) -> None:
        produce(self.servers, self.given, (json.dumps({"id": self.put_in + n}) for n in range(count)))
        self.put_in += count

    def batches(self, log: str) -> list[int]:
        return written(self.checkpoint, log)

    def has_gap(self) -> bool:
        return bool(missing(self.batches("offsets"), self.batches("commits")))

    def written(self) -> Counter[int]:
        return Counter(json.loads(message.value())["id"] for message in consume(self.servers, self.taken))

    def set(self, more: str) -> None:
        file = self.root / "pipelines/p0.yaml"
        text = file.read_text().split("queries:")[0] + more
        # Real-Time Mode takes no limit.
        file.write_text(text.replace(f"    {LIMIT}\n", "") if "realtime" in more else text)

    def await_all(self) -> None:
        await_rows(self.servers, self.taken, self.put_in)


@pytest.fixture
def quick(project_at, kafka, topic) -> Quick:
    given, taken = topic(), topic()
    text = (
        PIPELINE.replace("LIMIT", LIMIT)
        .replace("SERVERS", kafka.servers)
        .replace("GIVEN", given)
        .replace("TAKEN", taken)
    )
    return Quick(project_at(text), kafka.servers, given, taken)


def with_a_gap(quick: Quick, running: Callable) -> None:
    """Runs it so that only its first and its last batch are written down: 0 and 19."""
    quick.set("queries: {orders: {async_progress: 5 minutes}}\n")
    quick.feed(400)
    with running(quick.root):
        quick.await_all()
    assert [quick.batches(log) for log in ("offsets", "commits")] == [[0, 19], [0, 19]]


@pytest.mark.covers("async.progress")
def test_low_writes_progress_down_beside_the_work_and_a_stop_repeats_nothing(quick, running):
    for more in (600, 100):
        quick.feed(more)
        with running(quick.root):
            quick.await_all()
    known = quick.batches("offsets")
    assert max(known) == 34  # 20 records in a batch
    assert len(known) < 35
    assert quick.written() == Counter(range(700))


@pytest.mark.covers("async.interval")
@pytest.mark.parametrize(("value", "known"), [("0 seconds", range(10)), ("false", range(10)), ("5 minutes", [0])])
def test_the_interval_says_how_often(quick, running, value, known):
    quick.set(f"queries: {{orders: {{async_progress: {value}}}}}\n")
    quick.feed(200)
    with running(quick.root):
        quick.await_all()
        deadline = time.monotonic() + 120
        while quick.batches("offsets") != list(known) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert quick.batches("offsets") == list(known)
    assert quick.written() == Counter(range(200))


@pytest.mark.covers("async.switch-off")
@pytest.mark.parametrize("first", [400, 20], ids=["committed", "under way"])
def test_every_other_way_goes_on_from_a_gap_and_loses_nothing(quick, running, run_once, first):
    with_a_gap(quick, running)
    if first == 20:  # as after a crash before batch 19 was done: all that came after batch 0 is to be done again
        for name in ("19", ".19.crc"):
            (quick.checkpoint / "commits" / name).unlink(missing_ok=True)
    kept = quick.root / "kept"
    shutil.copytree(quick.checkpoint, kept)
    for way, settings in WAYS.items():
        shutil.rmtree(quick.checkpoint)
        shutil.copytree(kept, quick.checkpoint)
        quick.checkpoint.with_suffix(".seal").unlink(missing_ok=True)  # a checkpoint that is put back is refused
        before = quick.written()
        quick.feed(30)
        quick.set(settings)
        wanted = set(range(first, quick.put_in))
        if way == "once":
            assert not errors_in(run_once(quick.root).problems)
        else:
            with running(quick.root):
                deadline = time.monotonic() + 300
                while not wanted <= set(quick.written() - before) and time.monotonic() < deadline:
                    time.sleep(0.2)
        assert set(quick.written() - before) == wanted, way


def test_a_log_that_only_async_progress_can_follow_is_one_problem_whose_steps_lead_on(quick, running, run_once):
    with_a_gap(quick, running)
    for name in ("offsets/0", "offsets/.0.crc", "commits/0", "commits/.0.crc", "commits/19", "commits/.19.crc"):
        (quick.checkpoint / name).unlink(missing_ok=True)
    with pytest.raises(UserError) as told:
        run_once(quick.root)
    (problem,) = told.value.problems
    assert problem.code == "CHECKPOINT007"
    assert "async_progress: 0 seconds" in problem.fix
    quick.set("queries: {orders: {async_progress: 0 seconds}}\n")
    quick.feed(40)
    with running(quick.root):
        await_rows(quick.servers, quick.taken, 2 * 400 + 40)  # all since the first record are repeated
    quick.set("")
    quick.feed(10)
    assert not errors_in(run_once(quick.root).problems)
    assert quick.written() == Counter({n: 2 if n < 400 else 1 for n in range(450)})


@pytest.mark.proof
@pytest.mark.covers("recovery.crash")
def test_kills_lose_no_id_and_a_run_once_goes_on(quick, tmp_path):
    """In a process of its own, that can be killed."""
    for _ in range(2):
        before = quick.batches("commits")
        quick.feed(40)
        with (tmp_path / "run.log").open("w") as log:
            process = subprocess.Popen([PENSTOCK, "run"], cwd=quick.root, stdout=log, stderr=log)
        deadline = time.monotonic() + 600
        while quick.batches("commits")[-2:] == before[-2:] or not quick.has_gap():
            assert process.poll() is None, (tmp_path / "run.log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "run.log").read_text()
            if quick.batches("commits") != before:  # before, Spark starts: what comes then has to be taken later
                quick.feed(20)
            time.sleep(0.05)
        kill(process, with_jvm=True)
    assert quick.has_gap()
    run_to_the_end(quick.root)
    assert set(quick.written()) == set(range(quick.put_in))


def test_check_shows_it_with_its_reason_and_its_cost(quick, start_engine):
    from penstock.actions.check import check

    told = check(quick.root, (), None, start_engine, show_plans=True)
    (setting,) = [one for one in told.plans[0].settings if one.name == "async_progress"]
    assert (setting.value, bool(setting.why)) == ("1 second", True)
    assert re.search("crash repeats", setting.costs)
    assert "1 second of work" in told.queries[0].reason
