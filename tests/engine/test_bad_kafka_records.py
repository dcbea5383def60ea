"""A record in Kafka that stops its query: it is told why, and no later step can hide it."""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.registry import serving
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


ORDERS = """
pipeline: registered
sources:
  orders:
    type: kafka
    servers: {servers}
    topics: [{into}]
    starting: earliest
    format: {{type: avro, registry: {{url: "{url}"}}}}
sinks:
  out: {{of: orders, type: kafka, servers: {servers}, topic: {out}}}
"""
_ID, _CITY = {"name": "id", "type": "long"}, {"name": "city", "type": "string", "default": "Oslo"}


def order(url: str, topic: str, fields: list[dict[str, str]], value: dict[str, object]) -> bytes:
    schema = json.dumps({"type": "record", "name": "order", "fields": fields})
    serializer = AvroSerializer(SchemaRegistryClient({"url": url}), schema)
    data = serializer(value, SerializationContext(topic, MessageField.VALUE))
    assert isinstance(data, bytes)
    return data


def test_a_schema_that_comes_while_the_query_runs_is_fetched(project_at, running, kafka, topic):
    into, out = topic(), topic()
    with serving() as registry:
        root = project_at(ORDERS.format(servers=kafka.servers, into=into, out=out, url=registry.url))
        produce(kafka.servers, into, [order(registry.url, into, [_ID], {"id": 1})])

        def sent() -> list[dict[str, object]]:
            return [json.loads(record.value() or b"null") for record in consume(kafka.servers, out)]

        def wait_for(rows: int) -> None:
            deadline = time.monotonic() + 60
            while len(sent()) < rows and time.monotonic() < deadline:
                time.sleep(0.2)

        with running(root):
            wait_for(1)
            produce(kafka.servers, into, [order(registry.url, into, [_ID, _CITY], {"id": 2, "city": "Rome"})])
            wait_for(2)
        assert sent() == [{"id": 1}, {"id": 2, "city": "Rome"}]


def test_a_schema_that_the_registry_lacks_is_named(project_at, run_once, kafka, topic):
    into, out = topic(), topic()
    with serving() as registry:
        root = project_at(ORDERS.format(servers=kafka.servers, into=into, out=out, url=registry.url))
        produce(kafka.servers, into, [order(registry.url, into, [_ID], {"id": 1}), b"\0\0\0\0\x63\2"])
        (problem,) = run_once(root).problems
    assert problem.code == "REGISTRY004"
    assert f"topic {into}, partition 0, offset 1 of schema id 99" in problem.message
    assert problem.where.line == 8
