"""Messages become columns, and none of them can stop a query: each bad one gets a reason in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pydantic import ValidationError

from penstock.dead_letters.bad_records import HIDDEN
from penstock.formats.messages_avro import AvroMessageWrite
from penstock.formats.messages_registry import Registry
from penstock.problems import Fault
from penstock.sources import Kafka
from tests.registry import SchemaRegistry, serving

pytestmark = pytest.mark.spark

KAFKA_SCHEMA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_ID = {"name": "id", "type": "long"}
_NOTE = {"name": "note", "type": ["null", "string"], "default": None}
_CITY = {"name": "city", "type": "string", "default": "Oslo"}
ORDER_1 = json.dumps({"type": "record", "name": "order", "fields": [_ID, _NOTE]})
ORDER_2 = json.dumps({"type": "record", "name": "order", "fields": [_ID, _NOTE, _CITY]})
_A, _B = {"name": "a", "type": ["null", "long"]}, {"name": "b", "type": ["null", "string"]}
_MANY = {"type": "array", "items": "long"}
NULLABLE = json.dumps({"type": "record", "name": "n", "fields": [_A, _B]})


@pytest.fixture
def decoded(spark) -> Any:
    """The rows that values (and keys) become: user's columns as a tuple, then the reason."""

    def decoded(written: Any, *values: Any, keys: tuple[Any, ...] = (), **more: Any) -> list[tuple[Any, ...]]:
        source = Kafka(servers="k:9092", topics=("orders",), format=written, **more)
        keys = keys or (None,) * len(values)
        pairs = enumerate(zip(keys, values, strict=True))
        records = [(key, value, "orders", 0, offset, None, 0, None) for offset, (key, value) in pairs]
        rows = source.decoded(spark.createDataFrame(records, KAFKA_SCHEMA)).collect()
        assert [row[HIDDEN].origin.offset for row in rows] == list(range(len(values)))
        assert [row[HIDDEN].raw for row in rows] == [None if value is None else bytearray(value) for value in values]
        return [(*row[:-1], row[HIDDEN].reason) for row in rows]

    return decoded


def json_of(schema: str, **more: Any) -> dict[str, Any]:
    return {"type": "json", "schema": schema, **more}


REASONS = {
    b'{"id": 1, "amount": 2.5}': None,
    b"{}": None,
    b'{"id": 3, "amo': 'not JSON: {"id": 3, "amo',
    b"garbage": "not JSON: garbage",
    b"": "the value is empty",
    b" \n ": "the value is empty",
    None: "the value is NULL",
    b"null": "the value is JSON null",
    b'{"id": 4, "amount": "many"}': "`amount` is not a DOUBLE: many",
    b'{"id": 4.5}': "`id` is not a BIGINT: 4.5",
    b'{"at": "yesterday"}': "`at` is not a TIMESTAMP: yesterday",
    b'{"tags": 7}': "`tags` is not an ARRAY<STRING>: 7",
    b'{"who": {"age": "old"}}': "a value inside does not fit the schema",
    b'[{"id": 1}]': 'not a JSON object: [{"id": 1}]',
    b"7": "not a JSON object: 7",
    b'{"tags": ["\xff"]}': "not UTF-8",
    b'{"id": 99999999999999999999}': "`id` is not a BIGINT: 99999999999999999999",
    b'{"who": '
    + b"[" * 1_100
    + b"]" * 1_100
    + b"}": "is nested deeper than 1,000 levels, which is more than Spark parses",
    b'{"id": ' + b"1" * 1_100 + b"}": "holds a number of more than 1,000 digits, which is more than Spark parses",
    b'{"id": ' + b"[" * 1_100: "not JSON: " + ('{"id": ' + "[" * 1_100)[:60],
    b'{"id": 1, "amount": 2.5' + b" " * 4_000 + b"}": "4024 bytes, more than max_record_bytes: 4000",
}


def test_every_bad_json_record_has_its_reason(decoded) -> None:
    schema = json_of("id BIGINT, amount DOUBLE, at TIMESTAMP, tags ARRAY<STRING>, who STRUCT<age: INT>")
    rows = decoded(schema, *REASONS, max_record_bytes=4_000)
    assert dict(zip(REASONS, (row[-1] for row in rows), strict=True)) == REASONS
    assert rows[0][:2] == (1, 2.5)


def test_options_of_json_are_passed_on(decoded) -> None:
    written = json_of("d DATE, n INT", date_format="dd.MM.yyyy", spark_options={"allowNumericLeadingZeros": True})
    ((day, number, reason),) = decoded(written, b'{"d": "31.01.2026", "n": 007}')
    assert (str(day), number, reason) == ("2026-01-31", 7, None)


def test_framed_json_loses_its_frame(decoded) -> None:
    written = json_of("id BIGINT", framed=True)
    assert decoded(written, b'\0\0\0\0\1{"id": 1}', b'\7\0\0\0\1{"id": 1}', b"\0\0", b'\0\0\0\0\1{"id": "x"}', b"") == [
        (1, None),
        (None, "wrong magic byte 7, expected 0"),
        (None, "2 bytes, too few for a schema id"),
        (None, "`id` is not a BIGINT: x"),
        (None, "0 bytes, too few for a schema id"),
    ]


def test_csv_records_are_good_or_have_a_reason(decoded) -> None:
    written = {"type": "csv", "schema": "id BIGINT, amount DOUBLE, name STRING", "sep": ";"}
    assert decoded(written, b"1;2.5;Ann", b"1;;", b"1;many;Ann", b"1;2", b"1;2;3;4", b"", None, b"1;2;\xff") == [
        (1, 2.5, "Ann", None),
        (1, None, None, None),
        (1, None, "Ann", "`amount` is not a DOUBLE: many"),
        (1, 2.0, None, "not 3 values: 1;2"),
        (1, 2.0, "3", "not 3 values: 1;2;3;4"),
        (None, None, None, "the value is empty"),
        (None, None, None, "the value is NULL"),
        (None, None, None, "not UTF-8"),
    ]


def test_text_and_raw(decoded) -> None:
    assert decoded("text", "å".encode(), b"", None, b"\xff\xfe")[:3] == [
        ("å", None),
        ("", None),
        (None, "the value is NULL"),
    ]
    assert decoded("text", b"\xff\xfe")[0][-1] == "not UTF-8"
    assert decoded("raw", b"\xff", None) == [(bytearray(b"\xff"), None), (None, "the value is NULL")]


def test_tombstones_are_kept_where_they_are_wanted(decoded) -> None:
    rows = decoded(json_of("id BIGINT"), None, b"null", keys=(b"k", b"k"), keep_tombstones=True, key_format="text")
    assert rows == [(None, "k", None), (None, "k", "the value is JSON null")]


def test_keys_are_decoded_too(decoded) -> None:
    text = decoded("text", b"v", b"v", b"v", None, keys=(b"k", None, b"\xff", b"\xff"), key_format="text")
    assert [row[-1] for row in text] == [None, None, "the key: not UTF-8", "the value is NULL"]
    assert [row[1] for row in text[:2]] == ["k", None]
    key = json_of("k INT")
    (good, none, bad) = decoded("text", b"v", b"v", b"v", keys=(b'{"k": 1}', None, b"{"), key_format=key)
    assert (good[1].k, good[2]) == (1, None)
    assert none == ("v", None, None)
    assert bad[2] == "the key: not JSON: {"
    both = decoded(key, b'{"k": 1}', b"{", keys=(b"{", b"{"), key_format=key)
    assert [row[-1] for row in both] == ["the key: not JSON: {", "not JSON: {"]


def test_metadata_stands_beside_the_columns(spark) -> None:
    source = Kafka(
        servers="k:9092",
        topics=("orders",),
        format="text",
        metadata=("key", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers"),
    )
    rows = source.decoded(spark.createDataFrame([], KAFKA_SCHEMA))
    assert rows.columns == [
        "value", "_key", "_topic", "_partition", "_offset", "_timestamp", "_timestamp_type", "_headers", HIDDEN,
    ]  # fmt: skip
    assert dict(rows.dtypes)["_key"] == "binary"
    assert dict(rows.dtypes)["_timestamp_type"] == "int"
    twice = source.model_copy(update={"format": Kafka(**DECLARED, format=json_of("_KEY INT")).format})
    with pytest.raises(Fault, match="two columns"):
        twice.decoded(spark.createDataFrame([], KAFKA_SCHEMA))


DECLARED: dict[str, Any] = {"servers": "k:9092", "topics": ("orders",)}


def test_a_good_record_is_decoded_once_and_its_reasons_never(spark) -> None:
    records = spark.createDataFrame([], KAFKA_SCHEMA)
    source = Kafka(**DECLARED, format=json_of("id BIGINT, amount DOUBLE"))
    plan = source.decoded(records).where(f"{HIDDEN}.reason IS NULL").drop(HIDDEN)
    text = plan._jdf.queryExecution().optimizedPlan().toString()
    assert text.count("from_json(") == 1
    assert "is not a" not in text


def test_avro_records_are_good_or_have_a_reason(decoded) -> None:
    written = {"type": "avro", "schema": NULLABLE}
    assert decoded(written, b"\2\6\2\4ab", b"\0\0", b"\2\6\2\4a", b"\x09", b"", None) == [
        (3, "ab", None),
        (None, None, None),
        (None, None, "not Avro of this schema"),
        (None, None, "not Avro of this schema"),
        (None, None, "the value is empty"),
        (None, None, "the value is NULL"),
    ]


def test_a_length_that_would_fill_the_memory_is_a_bad_record(decoded) -> None:
    huge = b"\0\2" + bytes.fromhex("80d0acf30e") + b"ab"  # a text that says it is 2 GB long
    assert decoded({"type": "avro", "schema": NULLABLE}, huge)[0][-1] == "not Avro of this schema"
    many = json.dumps({"type": "record", "name": "n", "fields": [{"name": "a", "type": _MANY}]})
    assert decoded({"type": "avro", "schema": many}, huge[2:])[0][-1] == "not Avro of this schema"


def test_an_avro_key_may_be_one_value(decoded) -> None:
    rows = decoded("text", b"v", b"v", keys=(b"\6", b"\x80"), key_format={"type": "avro", "schema": '"long"'})
    assert rows == [("v", 3, None), ("v", None, "the key: not Avro of this schema")]


@pytest.fixture
def registry() -> Any:
    with serving(login=("me", "secret")) as registry:
        yield registry


def serialized(registry: SchemaRegistry, schema: str, value: Any, topic: str = "orders", part: str = "value") -> bytes:
    client = SchemaRegistryClient({"url": registry.url, "basic.auth.user.info": "me:secret"})
    data = AvroSerializer(client, schema)(value, SerializationContext(topic, getattr(MessageField, part.upper())))
    assert isinstance(data, bytes)
    return data


def of(registry: SchemaRegistry, **more: Any) -> dict[str, Any]:
    return {"type": "avro", "registry": {"url": registry.url, "username": "me", "password": "secret"} | more}


def test_messages_of_the_real_serializer_are_resolved_to_the_newest_schema(decoded, registry) -> None:
    old = serialized(registry, ORDER_1, {"id": 1, "note": "hi"})
    new = serialized(registry, ORDER_2, {"id": 2, "note": None, "city": "Rome"})
    registry.add("others-value", '"long"')
    assert decoded(of(registry), old, new, b"\7" + old[1:], b"\0\0\0\0\x09\2", old[:6], b"\0\0", old[:5], None) == [
        (1, "hi", "Oslo", None),
        (2, None, "Rome", None),
        (None, None, None, "wrong magic byte 7, expected 0"),
        (None, None, None, "schema id 9 is not known: the registry had 1, 2 when the query started"),
        (None, None, None, "not Avro of schema id 1"),
        (None, None, None, "2 bytes, too few for a schema id"),
        (None, None, None, "not Avro of schema id 1"),
        (None, None, None, "the value is NULL"),
    ]


def test_messages_are_resolved_to_a_schema_of_the_users(decoded, registry, tmp_path) -> None:
    message = serialized(registry, ORDER_2, {"id": 2, "note": "n", "city": "Rome"})
    mine = '{"type":"record","name":"order","fields":[{"name":"city","type":"string"}]}'
    assert decoded(of(registry) | {"schema": mine}, message) == [("Rome", None)]
    (tmp_path / "order.avsc").write_text(mine)
    assert decoded(of(registry) | {"schema_file": str(tmp_path / "order.avsc")}, message) == [("Rome", None)]
    with pytest.raises(Fault, match="holds no Avro schema"):
        decoded(of(registry) | {"schema_file": str(tmp_path / "none.avsc")}, message)


def test_subjects_are_named_or_found(decoded, registry) -> None:
    message = serialized(registry, ORDER_1, {"id": 1, "note": None}, topic="elsewhere")
    with pytest.raises(Fault) as raised:
        decoded(of(registry), message)
    assert raised.value.code == "REGISTRY002"
    assert "`orders-value`" in raised.value.message
    assert decoded(of(registry, subject="elsewhere-value"), message) == [(1, None, None)]
    key = serialized(registry, '"long"', 7, part="key")
    assert decoded("text", b"v", keys=(key,), key_format=of(registry)) == [("v", 7, None)]


def test_topics_of_a_pattern_find_their_subjects(spark, registry) -> None:
    registry.add("eu.orders-value", ORDER_1)
    registry.add("us.orders-value", ORDER_1)
    registry.add("us.clicks-value", '"long"')
    rows = Kafka(servers="k", topic_pattern=r".*\.orders", format=of(registry)).decoded(
        spark.createDataFrame([], KAFKA_SCHEMA)
    )
    assert rows.columns == ["id", "note", HIDDEN]
    registry.add("us.orders-value", ORDER_2)
    with pytest.raises(Fault, match="differ"):
        Kafka(servers="k", topics=("eu.orders", "us.orders"), format=of(registry)).decoded(rows)


def test_a_registry_that_cannot_be_asked_is_told(decoded, registry) -> None:
    with pytest.raises(Fault) as raised:
        decoded(of(registry, password="wrong-word"), b"")
    assert raised.value.code == "REGISTRY001"
    assert "401 Unauthorized" in raised.value.message
    assert "wrong-word" not in raised.value.message
    with pytest.raises(Fault, match="cannot be asked"):
        decoded({"type": "avro", "registry": {"url": "http://127.0.0.1:1"}}, b"")


def test_an_id_is_asked_for_once(spark, registry) -> None:
    from penstock.formats.messages import RegistrySubject

    write = AvroMessageWrite(registry=Registry(url=registry.url, username="me", password="secret"))
    rows = spark.sql("SELECT 1L AS id, 'x' AS note")
    for _ in range(3):
        data = rows.select(write.encoded(rows, rows.columns, RegistrySubject(("orders",))).alias("v")).first().v
        assert bytes(data[:5]) == b"\0\0\0\0\1"
    assert registry.asked == ["POST /subjects/orders-value/versions"]
    assert json.loads(registry.schemas[0])["name"] == "record"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("json", "Field required"),
        ({"type": "json", "schema": "a INT", "spark_options": {"mode": "FAILFAST"}}, "on_bad_record"),
        ("avro", "without `schema`"),
        ({"type": "avro", "schema": "{nope"}, "not JSON"),
        ({"type": "avro", "schema": "1", "schema_file": "x"}, "not both"),
        ("parquet", "is not a format of messages; use one of: avro, csv, json, raw, text"),
        ({"type": "avro", "registry": {"url": "registry:8081"}}, "pattern"),
    ],
)
def test_a_format_that_cannot_work_is_refused(written: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Kafka(**DECLARED, format=written)
