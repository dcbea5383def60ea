"""Dead letters that leave with the rows of a query from Kafka to Kafka."""

from __future__ import annotations

import json

import pytest

from tests.services import consume, produce

pytestmark = [pytest.mark.spark, pytest.mark.services]

PIPELINE = """
pipeline: routed
sources:
  orders:
    type: kafka
    servers: {servers}
    topics: [{into}]
    starting: earliest
    format: {{type: json, schema: "id BIGINT, amount BIGINT"}}
    on_bad_record: dead_letter
functions:
  half: {{python: "scores:half", returns: BIGINT}}
steps:
  halved: {{sql: "SELECT id, half(amount) AS amount FROM orders"}}
sinks:
  out: {{of: halved, type: kafka, servers: {servers}, topic: {out}, dead_letter_topic: {bad}}}
"""
SCORES = "def half(amount):\n    assert amount % 2 == 0, 'odd'\n    return amount // 2\n"


def test_bad_records_go_to_their_topic_in_the_same_query(project_at, run_once, kafka, topic):
    into, out, bad = topic(), topic(), topic()
    text = PIPELINE.format(servers=kafka.servers, into=into, out=out, bad=bad)
    root = project_at(text, files={"scores.py": SCORES})
    values = ['{"id": 1, "amount": 2}', "nonsense", '{"id": 3, "amount": 3}', '{"id": 4, "amount": 8}']
    produce(kafka.servers, into, values)
    result = run_once(root)
    assert result.ok, result.problems
    assert [query.name for query in result.queries] == ["halved"]
    assert result.queries[0].bad_rows == 2
    rows = [json.loads(message.value()) for message in consume(kafka.servers, out)]
    assert rows == [{"id": 1, "amount": 1}, {"id": 4, "amount": 4}]
    letters = [json.loads(message.value()) for message in consume(kafka.servers, bad)]
    assert {(letter["node"], letter["topic"], letter["offset"]) for letter in letters} == {
        ("orders", into, 1),
        ("halved", into, 2),
    }


def test_a_query_that_keeps_state_cannot_route(project_at, run_once, kafka, topic):
    text = PIPELINE.format(servers=kafka.servers, into=topic(), out=topic(), bad=topic())
    text = text.replace("SELECT id, half(amount) AS amount FROM orders", "SELECT DISTINCT id FROM orders")
    root = project_at(text, files={"scores.py": SCORES})
    assert [problem.code for problem in run_once(root).problems] == ["RECORD006"]
