"""`latency: realtime` from Kafka to Kafka: rows leave as they come, minutes before their batch ends."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.problems import errors_in
from penstock.supervise.loop import Stop
from tests.services import consume, produce

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
def test_rows_leave_before_their_batch_ends(project_at, run_once, kafka, topic):
    given, taken = topic(), topic()
    produce(kafka.servers, given, ['{"id": 0}', '{"id": 1}'])
    root = project_at(PIPELINE.replace("SERVERS", kafka.servers).replace("GIVEN", given).replace("TAKEN", taken))
    stop, ran = Stop(), []
    thread = threading.Thread(target=lambda: ran.append(run_once(root, once=False, stop=stop)))
    thread.start()
    try:
        _await(kafka.servers, taken, 1)
        produce(kafka.servers, given, [f'{{"id": {number}}}' for number in range(2, 200)])
        _await(kafka.servers, taken, 100)
    finally:
        stop.ask()
        thread.join(60)
    assert not thread.is_alive(), "a real-time query was waited for"
    assert not errors_in(ran[0].problems)
    written = [message.value() for message in consume(kafka.servers, taken)]
    assert sorted(written) == sorted(f'{{"id":{number}}}'.encode() for number in range(0, 200, 2))


def _await(servers: str, topic: str, count: int) -> None:
    deadline = time.monotonic() + 90
    while len(consume(servers, topic)) < count:
        assert time.monotonic() < deadline, f"{count} rows did not come"
        time.sleep(0.2)
