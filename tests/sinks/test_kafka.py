"""Rows as records of Kafka topics, on a real broker: formats, keys, headers, ids, and a batch that is run again."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pydantic import ValidationError

from penstock.connections.kafka_options import BATCH_BYTES, LINGER, session_setting
from penstock.problems import Fault
from penstock.sinks import Kafka
from penstock.sinks.batch import Batch
from penstock.sinks.kafka import RECORD_ID
from tests.frames import frame
from tests.registry import serving
from tests.services import consume

pytestmark = [pytest.mark.spark, pytest.mark.services]

ROWS = "SELECT * FROM VALUES (1L, 'a', 2.5D, X'01'), (2L, 'b', NULL, X'02') AS t(id, name, amount, bytes)"
BATCH = Batch("p", "query", "sink", 0, lambda rows: None)


@pytest.fixture
def sink(kafka) -> Callable[..., Kafka]:
    return lambda **keys: Kafka.model_validate({"servers": kafka.servers} | keys)


@pytest.fixture
def written(spark, kafka, sink, topic) -> Callable[..., list[Any]]:
    """Writes rows as a batch and gives the records that came of it."""

    def written(sql: str = ROWS, **keys: Any) -> list[Any]:
        name = keys.pop("to", None) or topic(partitions=keys.pop("partitions", 1))
        spec = sink(**({"topic": name} if "topic_column" not in keys else {}), **keys)
        rows = spark.sql(sql)
        spec.probe()
        spec.judge(rows)
        spec.prepare(rows)
        spec.write(spec.encoded(rows), BATCH)
        return sorted(consume(kafka.servers, name), key=lambda message: message.value() or b"")

    return written


def ids(messages: list[Any]) -> list[str]:
    return [dict(message.headers())[RECORD_ID].decode() for message in messages]


@pytest.mark.covers("sink.kafka")
def test_values_are_json_of_all_columns(written) -> None:
    messages = written("SELECT 1L AS id, timestamp'2026-01-31 12:00:00' AS at, CAST(NULL AS INT) AS none, X'ff' AS raw")
    assert json.loads(messages[0].value()) == {"id": 1, "at": "2026-01-31T12:00:00.000Z", "raw": "/w=="}
    assert messages[0].key() is None
    assert re.fullmatch("[0-9A-F]{1,16}-[0-9A-F]{1,16}", ids(messages)[0])
    (message,) = written("SELECT 1 AS id, NULL AS none", format={"type": "json", "ignore_null_fields": False})
    assert message.value() == b'{"id":1,"none":null}'


def test_text_raw_and_chosen_columns(written) -> None:
    assert [one.value() for one in written(format="text", value=["name"])] == [b"a", b"b"]
    assert [one.value() for one in written(format="raw", value=["bytes"])] == [b"\1", b"\2"]
    assert [one.value() for one in written("SELECT 7 AS value, 1 AS other", format="text")] == [b"7"]
    assert [one.value() for one in written(value=["id"])] == [b'{"id":1}', b'{"id":2}']


def test_keys(written) -> None:
    assert [one.key() for one in written(key=["id"])] == [b"1", b"2"]
    assert [one.key() for one in written(key=["bytes"])] == [b"\1", b"\2"]
    assert [one.key() for one in written(key=["id", "name"])] == [b'{"id":1,"name":"a"}', b'{"id":2,"name":"b"}']
    assert [one.key() for one in written(key=["id"], key_format="json")] == [b'{"id":1}', b'{"id":2}']
    assert json.loads(written(key=["id"])[0].value())["id"] == 1


def test_headers_and_partitions(written) -> None:
    sql = "SELECT id, name AS trace, bytes AS mark, CAST(id - 1 AS INT) AS place FROM (" + ROWS + ")"
    messages = written(sql, headers={"trace": "trace", "mark": "mark"}, partition_column="place", partitions=2)
    assert [one.value() for one in messages] == [b'{"id":1}', b'{"id":2}']
    assert [one.partition() for one in messages] == [0, 1]
    assert [one.headers()[:2] for one in messages] == [
        [("trace", b"a"), ("mark", b"\1")],
        [("trace", b"b"), ("mark", b"\2")],
    ]
    assert [one.headers()[2][0] for one in messages] == [RECORD_ID, RECORD_ID]


@pytest.mark.covers("sink.kafka")
def test_each_row_goes_to_the_topic_that_it_names(spark, sink, kafka, topic) -> None:
    first, second = topic(), topic()
    rows = spark.sql(f"SELECT 1 AS id, '{first}' AS topic UNION ALL SELECT 2, '{second}'")
    spec = sink()
    spec.prepare(rows)
    spec.write(spec.encoded(rows), BATCH)
    assert [one.value() for one in consume(kafka.servers, first)] == [b'{"id":1}']
    assert [one.value() for one in consume(kafka.servers, second)] == [b'{"id":2}']
    other = sink(topic_column="where_to")
    renamed = rows.withColumnRenamed("topic", "where_to")
    other.prepare(renamed)
    other.write(other.encoded(renamed), BATCH)
    assert [one.value() for one in consume(kafka.servers, second)] == [b'{"id":2}'] * 2
    kept = sink(topic=first)
    kept.write(kept.encoded(rows.where("id = 1")), BATCH)
    assert json.loads(consume(kafka.servers, first)[-1].value() or b"")["topic"] == first


def test_avro_is_read_back(spark, written) -> None:
    from pyspark.sql.avro.functions import from_avro

    schema = (
        '{"type":"record","name":"r","fields":[{"name":"name","type":["string","null"]},{"name":"id","type":"long"}]}'
    )
    messages = written(f"SELECT id, name FROM ({ROWS})", format={"type": "avro", "schema": schema})
    read = frame(spark, [(one.value(),) for one in messages], "v BINARY")
    assert [tuple(row.r) for row in read.select(from_avro("v", schema).alias("r")).collect()] == [("a", 1), ("b", 2)]


def test_avro_for_the_real_deserializer(written, topic) -> None:
    with serving(login=("me", "secret")) as registry:
        address = {"url": registry.url, "username": "me", "password": "secret"}
        name = topic()
        avro = {"type": "avro", "registry": address}
        messages = written(f"SELECT id, name, amount FROM ({ROWS})", to=name, format=avro, key=["id"], key_format=avro)
        client = SchemaRegistryClient({"url": registry.url, "basic.auth.user.info": "me:secret"})
        value, key = (SerializationContext(name, part) for part in (MessageField.VALUE, MessageField.KEY))
        read = AvroDeserializer(client)
        assert [read(one.value(), value) for one in messages] == [
            {"id": 1, "name": "a", "amount": 2.5},
            {"id": 2, "name": "b", "amount": None},
        ]
        assert [read(one.key(), key) for one in messages] == [{"id": 1}, {"id": 2}]
        assert sorted(registry.subjects) == [f"{name}-key", f"{name}-value"]


def test_producer_options_reach_the_client(written) -> None:
    assert len(written(acks="all", compression="zstd", linger="20 ms", batch_bytes=100_000, max_request_bytes=2_000_000,
                       idempotence=True, delivery_timeout="1 minute", request_timeout="20 seconds",
                       kafka_options={"max.block.ms": 10_000})) == 2  # fmt: skip
    assert len(written(acks=1, idempotence=False)) == 2


def test_a_query_chooses_how_its_sinks_send_unless_they_say_so(spark, written) -> None:
    own = {LINGER: {"linger": "5 ms"}, BATCH_BYTES: {"batch_bytes": 1000}}
    for option, keys in own.items():
        name = session_setting(option)
        spark.conf.set(name, "-7")
        try:
            with pytest.raises(Exception, match=f"Invalid value -7 for configuration {option}"):
                written()
            assert len(written(**keys)) == 2
        finally:
            spark.conf.unset(name)


def test_ids_are_made_of_the_content_or_of_chosen_columns(written, topic) -> None:
    name = topic()
    first = ids(written(to=name))
    assert len(set(first)) == 2
    assert sorted(ids(written(to=name))) == sorted(first * 2)
    by_id = ids(written(record_id=["id"]))
    later = ids(written(ROWS.replace("2.5D", "9D"), record_id=["id"], key=["name"]))
    assert by_id == later
    assert not set(by_id) & set(first)
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in by_id)
    elsewhere = ids(written())
    assert not set(elsewhere) & set(first)


def test_a_key_is_no_value(written, topic) -> None:
    name = topic()
    rows = "SELECT * FROM VALUES ('a', 'b'), ('b', 'a'), ('ab', ''), ('', 'ab'), (NULL, 'a'), ('a', NULL) AS t(k, v)"
    found = written(rows, to=name, key=["k"], value=["v"], format="text")
    assert len(set(ids(found))) == len(found) == 6


def test_a_batch_that_is_run_again_repeats_itself_under_the_same_ids(spark, sink, kafka, topic, tmp_path: Path) -> None:
    name, folder, checkpoint = topic(), tmp_path / "in", tmp_path / "checkpoint"
    spec = sink(topic=name, key=["id"])

    def run(number: int) -> None:
        spark.range(number * 10, number * 10 + 5).coalesce(1).write.mode("append").json(str(folder))
        again()

    def again() -> None:
        rows = spark.readStream.schema("id BIGINT").json(str(folder))
        writer = spec.encoded(rows).writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        spec.start(writer, "out").awaitTermination(60)

    run(0)
    run(1)
    before = ids(consume(kafka.servers, name))
    assert len(set(before)) == len(before) == 10
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink()
    again()
    after = ids(consume(kafka.servers, name))
    assert after[:10] == before
    assert len(after) == 15
    assert sorted(after[10:]) == sorted(before[5:])
    # The same rows in other batches: a new checkpoint reads all of them at once.
    shutil.rmtree(checkpoint)
    again()
    assert sorted(ids(consume(kafka.servers, name))[15:]) == sorted(before)


FAULTS: dict[str, tuple[dict[str, Any], str, tuple[Any, ...]]] = {
    "no topic": ({}, "no column `topic`", ()),
    "topic column": ({"topic_column": "nme"}, "did you mean `name`", ("topic_column",)),
    "topic type": ({"topic_column": "id"}, "takes STRING", ("topic_column",)),
    "key": ({"topic": "t", "key": ["name", "nope"]}, "no column `nope`", ("key", 1)),
    "value": ({"topic": "t", "value": ["nope"]}, "no column `nope`", ("value", 0)),
    "record id": ({"topic": "t", "record_id": ["nope"]}, "no column `nope`", ("record_id", 0)),
    "header": ({"topic": "t", "headers": {"h": "nope"}}, "no column `nope`", ("headers", "h")),
    "header type": ({"topic": "t", "headers": {"h": "id"}}, "takes STRING or BINARY", ("headers", "h")),
    "partition": ({"topic": "t", "partition_column": "id"}, "takes INT", ("partition_column",)),
    "text": ({"topic": "t", "format": "text"}, "takes one column, and there are 4", ("format",)),
    "raw": ({"topic": "t", "format": "raw", "value": ["id"]}, "takes BINARY or STRING", ("format",)),
    "avro": (
        {
            "topic": "t",
            "format": {"type": "avro", "schema": '{"type":"record","name":"r","fields":[{"name":"z","type":"int"}]}'},
        },
        "a field `z`",
        ("format",),
    ),
}


@pytest.mark.parametrize(("keys", "said", "place"), FAULTS.values(), ids=FAULTS)
def test_rows_that_do_not_fit_are_told_before_the_start(spark, keys: dict[str, Any], said: str, place: Any) -> None:
    with pytest.raises(Fault, match=said) as raised:
        Kafka.model_validate({"servers": "k"} | keys).judge(spark.sql(ROWS))
    assert (raised.value.code, raised.value.keys) == ("KAFKA005", place)


@pytest.mark.parametrize(
    "keys",
    [
        {"servers": None},
        {"topic": "t", "topic_column": "c"},
        {"topic": "t", "key_format": "json"},
        {"topic": "t", "headers": {RECORD_ID: "id"}},
        {"topic": "t", "acks": 1, "idempotence": True},
        {"topic": "t", "format": "csv"},
        {"topic": "t", "kafka_options": {"acks": 1}},
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Kafka.model_validate({"servers": "k"} | keys)


def test_a_probe_finds_a_topic_that_nobody_makes(sink, topic) -> None:
    sink(topic=topic()).probe()
    sink().probe()
    with pytest.raises(Fault, match="makes none by itself") as raised:
        sink(topic="no-such-topic").probe()
    assert (raised.value.code, raised.value.keys) == ("KAFKA003", ("topic",))


def test_fewer_acknowledgements_promise_less() -> None:
    assert Kafka(servers="k", topic="t").declared_capabilities.guarantee.promise == "at-least-once"
    assert Kafka(servers="k", topic="t", acks=1).declared_capabilities.guarantee.promise == "none"
