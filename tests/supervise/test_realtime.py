"""`latency: realtime` from Kafka to Kafka: rows leave as they come, minutes before their batch ends, and are seen."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from penstock.actions.run import RunOptions, run
from penstock.problems import errors_in
from penstock.supervise.query_view import QueryView
from penstock.supervise.stopping import Stop
from tests.services import await_rows, consume, produce

PIPELINE = """
pipeline: quick
latency: realtime
sources:
  orders:
    type: kafka
    servers: SERVERS
    topics: [GIVEN]
    starting: earliest
    format: {type: json, schema: "id BIGINT"}
steps: {even: {sql: SELECT id FROM orders WHERE id % 2 = 0}}
sinks: {out: {of: even, type: kafka, servers: SERVERS, topic: TAKEN}}
"""


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.covers("trigger.real-time")
def test_rows_leave_before_their_batch_ends(project_at, running, kafka, topic):
    given, taken = topic(), topic()
    produce(kafka.servers, given, ['{"id": 0}', '{"id": 1}'])
    root = project_at(PIPELINE.replace("SERVERS", kafka.servers).replace("GIVEN", given).replace("TAKEN", taken))
    with running(root):
        await_rows(kafka.servers, taken, 1)
        produce(kafka.servers, given, [f'{{"id": {number}}}' for number in range(2, 200)])
        await_rows(kafka.servers, taken, 100)
    written = [message.value() for message in consume(kafka.servers, taken)]
    assert sorted(written) == sorted(f'{{"id":{number}}}'.encode() for number in range(0, 200, 2))


def watched(root, start_engine, is_enough):
    """How a run ends that is stopped as soon as its one query has been seen as it should be."""
    stop, seen = Stop(), list[QueryView]()

    def look(snapshot):
        (query,) = snapshot.queries
        seen.append(query)
        if is_enough(query) and not stop.asked:
            stop.ask()

    options = RunOptions(for_seconds=120)
    result = run(root, (), None, options, start_engine, stop, look, lambda line: None)
    assert not errors_in(result.problems)
    return result.queries[0], seen


@pytest.mark.spark
@pytest.mark.services
def test_each_batch_tells_how_late_its_records_came_and_the_pause_before_it(project_at, start_engine, kafka, topic):
    given, taken = topic(), topic()
    text = PIPELINE.replace("SERVERS", kafka.servers).replace("GIVEN", given).replace("TAKEN", taken)
    root = project_at(f"{text}queries: {{even: {{trigger: {{real_time: 5 seconds}}, mode: update}}}}\n")
    ended = Event()

    def feed():
        while not ended.wait(0.05):
            produce(kafka.servers, given, ['{"id": 0}', '{"id": 1}'])

    feeder = Thread(target=feed)
    feeder.start()
    try:
        query, _ = watched(root, start_engine, lambda query: query.pause_ms is not None)
    finally:
        ended.set()
        feeder.join()
    times = query.last.times["orders"]
    assert 0 <= times.p50_ms <= times.p95_ms <= times.p99_ms <= times.max_ms
    assert times.records == query.last.rows_in
    assert times.first_at_ms <= times.last_at_ms
    assert 0 <= query.pause_ms <= query.longest_pause_ms
    assert query.to_json()["latency"]["orders"]["p99_ms"] == times.p99_ms


@pytest.mark.spark
@pytest.mark.services
def test_rows_are_seen_minutes_before_their_batch_ends(project_at, start_engine, kafka, topic):
    given, taken = topic(), topic()
    produce(kafka.servers, given, [f'{{"id": {number}}}' for number in range(300)])
    root = project_at(PIPELINE.replace("SERVERS", kafka.servers).replace("GIVEN", given).replace("TAKEN", taken))
    query, seen = watched(root, start_engine, lambda query: query.under_way == 300)
    assert (query.state, query.batches, query.rows_in, query.under_way) == ("stopped", 0, 0, 300)
    assert query.to_json()["rows_under_way"] == 300
    assert all(one.under_way <= 300 for one in seen)
