"""`latency: realtime` from Kafka to Kafka: rows leave as they come, minutes before their batch ends."""

from __future__ import annotations

import pytest

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
