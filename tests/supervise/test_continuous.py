"""Continuous Processing from Kafka to Kafka: no batches, no task that is run again, and a checkpoint for both ways."""

from __future__ import annotations

import json
import time

import pytest

from penstock.problems import errors_in
from tests.services import consume, produce

PIPELINE = """
pipeline: quick
sources:
  orders:
    type: kafka
    servers: SERVERS
    topics: [GIVEN]
    starting: earliest
    format: {type: json, schema: "id BIGINT"}
steps:
  taken:
    sql: SELECT id FROM orders WHERE CONDITION
sinks: {out: {of: taken, type: kafka, servers: SERVERS, topic: TAKEN}}
queries: {taken: {trigger: {continuous: 1 second}}}
"""
BROKEN = "penstock.broken"
ONCE = f"reflect('java.lang.System', 'clearProperty', '{BROKEN}') = 'yes'"
"""True the first time that it is asked after the property was set."""


class Stream:
    """A project with one continuous query, and the topics at its ends."""

    def __init__(self, project_at, kafka, topic, condition="id >= 0"):
        self._servers, self._given, self._taken = kafka.servers, topic(), topic()
        names = {"SERVERS": kafka.servers, "GIVEN": self._given, "TAKEN": self._taken, "CONDITION": condition}
        text = PIPELINE
        for name, value in names.items():
            text = text.replace(name, value)
        self.root = project_at(text)
        self.sent = 0

    def send(self, count):
        produce(self._servers, self._given, [json.dumps({"id": self.sent + number}) for number in range(count)])
        self.sent += count

    def taken(self):
        return {json.loads(message.value())["id"] for message in consume(self._servers, self._taken)}

    def await_all(self):
        deadline = time.monotonic() + 300
        while self.taken() != set(range(self.sent)):
            assert time.monotonic() < deadline, f"{sorted(self.taken())} of {self.sent}"
            time.sleep(0.2)


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.covers("trigger.continuous", "continuous.switch")
def test_rows_leave_at_once_and_a_checkpoint_serves_both_ways(project_at, running, run_once, kafka, topic):
    stream = Stream(project_at, kafka, topic)
    stream.send(10)
    with running(stream.root):
        stream.await_all()
        stream.send(10)
        stream.await_all()
    stream.send(10)
    assert run_once(stream.root).problems == ()
    assert stream.taken() == set(range(30))
    (checkpoint,) = stream.root.glob("storage/checkpoints/quick/taken/0001")
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    for file in (f"{last}", f".{last}.crc"):  # as after a crash: the batch is planned, and not known to be done
        (checkpoint / "commits" / file).unlink(missing_ok=True)
    stream.send(10)
    with running(stream.root):
        stream.await_all()


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.covers("continuous.retries")
def test_a_failed_task_starts_the_query_again(project_at, running, spark, kafka, topic):
    stream = Stream(
        project_at, kafka, topic, f"CASE WHEN {ONCE} THEN CAST(raise_error('broken') AS BOOLEAN) ELSE true END"
    )
    system = spark._jvm.java.lang.System
    stream.send(10)
    with running(stream.root):
        stream.await_all()
        system.setProperty(BROKEN, "yes")
        stream.send(10)
        stream.await_all()
    assert system.getProperty(BROKEN) is None, "no task failed"


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.covers("continuous.retries")
def test_a_failure_that_comes_back_is_told(project_at, run_once, kafka, topic):
    stream = Stream(project_at, kafka, topic, "id < 5 OR CAST(raise_error('too many') AS BOOLEAN)")
    stream.send(10)
    result = run_once(stream.root, once=False, for_seconds=120)
    (problem,) = errors_in(result.problems)
    assert problem.code == "RUN003"
    assert "failed 3 times in the same way" in problem.message
    # A master that runs tasks again shows the second failure, and its log the first.
    assert "a task failed, and under `continuous` Spark does not run one again" in problem.message
    assert "`.penstock/spark.log`" in problem.fix
    assert result.queries[0].restarts == 2
