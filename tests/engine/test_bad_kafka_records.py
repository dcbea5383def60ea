"""A record in Kafka that stops its query: it is told why, and no later step can hide it."""

from __future__ import annotations

import json

import pytest

from tests.services import consume, produce

pytestmark = [pytest.mark.spark, pytest.mark.services]

PIPELINE = """
pipeline: strict
sources:
  orders:
    type: kafka
    servers: {servers}
    topics: [{into}]
    starting: earliest
    format: {{type: json, schema: "id BIGINT, cents BIGINT"}}
steps:
  dear: {{sql: "SELECT id FROM orders WHERE cents > 100"}}
sinks:
  out: {{of: dear, type: kafka, servers: {servers}, topic: {out}}}
"""


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"id": 2, "cents": "many"}', "`cents` is not a BIGINT: many"),
        ("nonsense", "not JSON: nonsense"),
        (None, "the value is NULL"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_it_stops_the_query_although_a_filter_would_drop_it(project_at, run_once, kafka, topic, record, reason):
    into, out = topic(), topic()
    root = project_at(PIPELINE.format(servers=kafka.servers, into=into, out=out))
    produce(kafka.servers, into, ['{"id": 1, "cents": 200}', record])
    (problem,) = run_once(root).problems
    assert problem.code == "RECORD001"
    assert f"at topic {into}, partition 0, offset 1: {reason}" in problem.message


def test_rows_are_counted_by_the_sink_itself(project_at, run_once, kafka, topic):
    into, out = topic(), topic()
    root = project_at(PIPELINE.format(servers=kafka.servers, into=into, out=out))
    produce(kafka.servers, into, [json.dumps({"id": number, "cents": number}) for number in range(200)])
    result = run_once(root)
    assert (result.queries[0].rows_in, result.queries[0].rows_out) == (200, 99)
    assert len(consume(kafka.servers, out)) == 99


def test_another_failure_is_not_taken_for_a_bad_record(project_at, run_once, kafka, topic):
    into, out = topic(), topic()
    text = PIPELINE.format(servers=kafka.servers, into=into, out=out)
    root = project_at(text.replace("cents > 100", "cents > 100 OR CAST(raise_error('too cheap') AS BOOLEAN)"))
    produce(kafka.servers, into, ['{"id": 1, "cents": 200}', '{"id": 2, "cents": 50}'])
    (problem,) = run_once(root).problems
    assert problem.code == "RUN001"
    assert "too cheap" in problem.message
