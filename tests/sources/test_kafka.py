"""Records of Kafka topics, on a real broker: every option, transactions, and records that are gone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pydantic import ValidationError

from penstock.connections.kafka_options import FETCH_BYTES, FETCH_WAIT, POLL_RECORDS, session_setting
from penstock.dead_letters.bad_records import HIDDEN
from penstock.facts.failure import Failure
from penstock.problems import Fault
from penstock.sources import Kafka
from penstock.sources.kafka_positions import to_moment
from penstock.sources.source import Reread
from tests.failures import of_error, of_query
from tests.services import consume, produce

pytestmark = [pytest.mark.spark, pytest.mark.services]

JSON = {"type": "json", "schema": "id BIGINT"}


@pytest.fixture
def source(kafka) -> Callable[..., Kafka]:
    def source(**keys: Any) -> Kafka:
        return Kafka.model_validate({"servers": kafka.servers, "format": "text"} | keys)

    return source


@pytest.fixture
def values(spark, source) -> Callable[..., list[Any]]:
    """What a static read of topics holds, in order."""

    def values(**keys: Any) -> list[Any]:
        rows = (
            source(read="static", **keys).load(spark).orderBy(f"{HIDDEN}.origin.partition", f"{HIDDEN}.origin.offset")
        )
        return [row.value for row in rows.collect()]

    return values


@pytest.fixture
def filled(kafka, topic) -> str:
    """A topic of two partitions: a0 … a4 and b0 … b4."""
    name = str(topic(partitions=2))
    produce(kafka.servers, name, [f"a{number}" for number in range(5)], partition=0)
    produce(kafka.servers, name, [f"b{number}" for number in range(5)], partition=1)
    return name


class Stream:
    """A query over a source, batch by batch into a list, on a checkpoint that can be resumed."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self.checkpoint = spark, str(folder / "checkpoint")
        self.batches: list[list[Any]] = []
        self.tasks: list[int] = []
        self.raised: Exception | None = None

    def failure(self, query: Any) -> Failure:
        return of_error(self.raised) if self.raised else of_query(query)

    def run(self, source: Kafka, **trigger: Any) -> Any:
        def keep(rows: Any, number: int) -> None:
            self.tasks.append(rows.rdd.getNumPartitions())
            try:
                self.batches.append([row.value for row in rows.collect()])
            except Exception as error:
                self.raised = error
                raise

        rows = source.load(self._spark)
        writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", self.checkpoint)
        query = writer.trigger(**(trigger or {"availableNow": True})).start()
        if not trigger:
            query.awaitTermination(120)
        return query


@pytest.fixture
def stream(spark, tmp_path) -> Iterator[Stream]:
    yield Stream(spark, tmp_path)
    for query in spark.streams.active:
        query.stop()


@pytest.mark.covers("source.kafka")
def test_topics_pattern_and_assigned_partitions(values, filled, kafka, topic) -> None:
    other = topic()
    produce(kafka.servers, other, ["o"])
    everything = [f"{letter}{number}" for letter in "ab" for number in range(5)]
    assert values(topics=[filled]) == everything
    assert sorted(values(topics=[filled, other])) == sorted([*everything, "o"])
    assert values(topic_pattern=f"{other[:-1]}.") == ["o"]
    assert values(assign={filled: [1]}) == everything[5:]


@pytest.mark.covers("source.kafka.positions")
def test_a_read_begins_and_ends_where_it_is_told(values, filled) -> None:
    assert values(topics=[filled], starting={filled: {0: 3, 1: 4}}) == ["a3", "a4", "b4"]
    assert values(topics=[filled], starting={filled: {0: 4}}, ending={filled: {1: 1}}) == ["a4", "b0"]
    assert values(assign={filled: [0]}, starting={filled: {0: 3}}) == ["a3", "a4"]
    assert values(assign={filled: [0]}, starting="earliest", ending="latest") == [f"a{n}" for n in range(5)]
    with pytest.raises(Fault, match="partition 7"):
        values(topics=[filled], starting={filled: {7: 1}})


@pytest.mark.covers("source.kafka.positions")
def test_a_read_begins_and_ends_at_a_moment(values, kafka, topic) -> None:
    name = topic(partitions=2, **{"retention.ms": "-1"})  # 1970 is long ago
    producer = Producer({"bootstrap.servers": kafka.servers})
    for number in range(4):
        producer.produce(name, f"a{number}", partition=0, timestamp=1_000_000 + number * 1_000)
        producer.produce(name, f"b{number}", partition=1, timestamp=2_000_000 + number * 1_000)
    producer.flush()
    later = {"timestamp": 1_002_000}
    assert values(topics=[name], starting=later) == ["a2", "a3", "b0", "b1", "b2", "b3"]
    assert values(topics=[name], starting={"timestamp": "1970-01-01T00:33:21Z", "if_none": "latest"}) == [
        "b1",
        "b2",
        "b3",
    ]
    assert values(topics=[name], starting={"timestamps": {name: 2_002_000}, "if_none": "latest"}) == ["b2", "b3"]
    by_partition = {"timestamps": {name: {0: 1_003_000}}}
    assert values(topics=[name], starting=by_partition) == ["a3", "b0", "b1", "b2", "b3"]
    assert values(topics=[name], starting=later, ending={"timestamp": 2_001_000}) == ["a2", "a3", "b0"]
    assert values(topics=[name], starting=by_partition, ending={"timestamps": {name: {1: 2_001_000}}}) == ["a3", "b0"]
    with pytest.raises(Exception, match=r"(?i)timestamp"):
        values(topics=[name], starting={"timestamp": 9_000_000_000_000})


@pytest.mark.covers("source.kafka.columns")
def test_metadata_headers_and_the_hidden_column(spark, source, kafka, topic) -> None:
    name = topic()
    produce(kafka.servers, name, ['{"id": 1}', "{", None], key="k", headers={"trace": "t", "none": None})
    every = ["key", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers"]
    read = source(topics=[name], format=JSON, read="static", metadata=every, key_format="text")
    rows = read.load_whole(spark).collect()
    first = rows[0]
    assert (first.id, first._key, first._topic, first._partition, first._offset) == (1, "k", name, 0, 0)
    assert first._timestamp_type == 0
    assert abs(first._timestamp.timestamp() - time.time()) < 60
    assert [tuple(header) for header in first._headers] == [("trace", bytearray(b"t")), ("none", None)]
    assert [row[HIDDEN].reason for row in rows] == [None, "not JSON: {", "the value is NULL"]
    assert [row[HIDDEN].reason for row in read.load(spark).collect()] == [None, "", ""]
    place = {"topic": name, "partition": 0, "offset": 1}
    assert read.reread(spark, place) == Reread("not JSON: {", bytearray(b"{"))
    bad = rows[1][HIDDEN]
    assert bad.raw == bytearray(b"{")
    assert (bad.origin.topic, bad.origin.partition, bad.origin.offset, bad.origin.key) == (name, 0, 1, bytearray(b"k"))
    assert bad.origin.headers == first._headers
    assert bad.origin.file is None


def test_aborted_transactions_are_not_seen(values, stream, source, kafka, topic) -> None:
    name = topic()
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": name})
    producer.init_transactions()
    for number, end in enumerate(("commit", "abort", "commit")):
        producer.begin_transaction()
        producer.produce(name, f"v{number}")
        producer.flush()
        getattr(producer, f"{end}_transaction")()
    assert values(topics=[name]) == ["v0", "v2"]
    assert values(topics=[name], isolation_level="read_uncommitted") == ["v0", "v1", "v2"]
    stream.run(source(topics=[name], starting="earliest"))
    assert stream.batches == [["v0", "v2"]]


@pytest.mark.covers("source.kafka.limits")
def test_batches_have_the_size_they_are_told(stream, source, filled, kafka) -> None:
    few = source(topics=[filled], starting="earliest", max_offsets_per_trigger=4, group_id_prefix="mine")
    stream.run(few)
    assert [len(batch) for batch in stream.batches] == [4, 4, 2]
    stream.run(few)
    assert len(stream.batches) == 3
    produce(kafka.servers, filled, ["c"])
    stream.run(few)
    assert stream.batches[3:] == [["c"]]


@pytest.mark.covers("source.kafka.limits")
def test_a_batch_waits_until_there_is_enough(stream, source, filled, kafka) -> None:
    patient = source(topics=[filled], starting="earliest", min_offsets_per_trigger=100, max_trigger_delay="3 seconds")
    query = stream.run(patient, processingTime="100 milliseconds")
    began = time.monotonic()
    while not stream.batches and time.monotonic() - began < 300:
        time.sleep(0.05)
    produce(kafka.servers, filled, ["c"])
    time.sleep(1)
    assert sum(map(len, stream.batches)) == 10
    while sum(map(len, stream.batches)) < 11 and time.monotonic() - began < 300:
        time.sleep(0.05)
    query.stop()
    assert sum(map(len, stream.batches)) == 11


def test_partitions_are_split(spark, stream, source, filled) -> None:
    def tasks(**keys: Any) -> int:
        return int(source(topics=[filled], read="static", **keys).load(spark).rdd.getNumPartitions())

    assert tasks() == 2
    assert tasks(min_partitions=4) >= 4
    stream.run(source(topics=[filled], starting="earliest", max_records_per_partition=2))
    assert stream.tasks == [6]


def test_the_remaining_options_reach_spark(values, filled) -> None:
    assert len(values(topics=[filled], group_id=f"group-{filled}", poll_timeout="30 seconds", fetch_retries=1,
                      fetch_retry_interval="10 ms", request_timeout="20 seconds", fail_on_data_loss=False,
                      kafka_options={"fetch.min.bytes": 1, "max.poll.records": 3})) == 10  # fmt: skip


def test_a_query_chooses_how_its_sources_fetch_unless_they_say_so(spark, source, filled) -> None:
    session = spark.newSession()

    def option_given(option: str, **keys: Any) -> str | None:
        rows = source(topics=[filled], **keys).load(session)
        (relation,) = (one for one in leaves(rows) if one.nodeName() == "StreamingRelationV2")
        return relation.extraOptions().get(f"kafka.{option}")

    chosen = {FETCH_WAIT: "10", POLL_RECORDS: "5000", FETCH_BYTES: "8388608"}
    for option, value in chosen.items():
        assert option_given(option) is None
        session.conf.set(session_setting(option), value)
        assert option_given(option) == value
        assert option_given(option, kafka_options={option: 70}) == "70"


def leaves(rows: Any) -> list[Any]:
    found = rows._jdf.queryExecution().analyzed().collectLeaves()
    return [found.apply(index) for index in range(found.size())]


def test_the_login_of_the_address_is_used(values, filled, kafka) -> None:
    login = {"servers": kafka.sasl_servers, "security_protocol": "SASL_PLAINTEXT", "username": "penstock"}
    assert len(values(topics=[filled], **login, password="secret")) == 10


def test_a_probe_finds_what_is_wrong(source, filled, kafka) -> None:
    source(topics=[filled]).probe()
    source(topic_pattern="anything").probe()
    source(assign={filled: [0, 1]}).probe()

    def fault(**keys: Any) -> Fault:
        began = time.monotonic()
        with pytest.raises(Fault) as raised:
            source(**keys).probe()
        assert time.monotonic() - began < 45  # the client's own limit is a minute
        return raised.value

    missing = fault(topics=[filled, "no-such-topic"])
    assert (missing.code, missing.keys) == ("KAFKA003", ("topics", 1))
    assert "`no-such-topic`" in missing.message
    assert "partition 5" in fault(assign={filled: [0, 5]}).message
    login = {"servers": kafka.sasl_servers, "security_protocol": "SASL_PLAINTEXT", "username": "penstock"}
    wrong = fault(topics=[filled], **login, password="wrong-word")
    assert wrong.code == "KAFKA002"
    assert "wrong-word" not in f"{wrong.message} {wrong.fix}"
    gone = fault(topics=[filled], servers="127.0.0.1:1")
    assert (gone.code, gone.keys) == ("KAFKA001", ("servers",))


def delete_before(servers: str, topic: str, partition: int, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (done,) = admin.delete_records([TopicPartition(topic, partition, offset)]).values()
    done.result(30)


@pytest.mark.covers("source.kafka.data-loss")
def test_records_that_are_gone_are_named(spark, stream, source, kafka, topic) -> None:
    name = topic(partitions=2)
    produce(kafka.servers, name, [f"a{number}" for number in range(100)], partition=0)
    produce(kafka.servers, name, ["b0"], partition=1)
    strict = source(topics=[name], starting="earliest")
    stream.run(strict)
    assert strict.gaps(stream.checkpoint) == []
    produce(kafka.servers, name, [f"a{number}" for number in range(100, 200)], partition=0)
    delete_before(kafka.servers, name, 0, 150)
    query = stream.run(strict, processingTime="0 seconds")
    with pytest.raises(Exception, match=r"(?s)."):
        query.awaitTermination(120)
    failure = stream.failure(query)
    assert failure.kind == "data_loss"
    with pytest.raises(Fault) as raised:
        strict.recover(failure, spark, stream.checkpoint)
    assert raised.value.code == "KAFKA004"
    assert f"{name}-0: offsets 100 to 149 are gone (50 records)" in raised.value.message
    assert f"{name}-1" not in raised.value.message
    assert not strict.recover(replace(failure, kind="other"), spark, stream.checkpoint)

    lenient = source(topics=[name], starting="earliest", fail_on_data_loss=False)
    assert lenient.gaps(stream.checkpoint) == [f"{name}-0: offsets 100 to 149 are gone (50 records)"]
    before = sum(map(len, stream.batches))
    stream.run(lenient)
    assert [value for batch in stream.batches for value in batch][before:] == [
        f"a{number}" for number in range(150, 200)
    ]
    assert lenient.gaps(stream.checkpoint) == []


def test_a_topic_that_was_made_anew_is_told(spark, stream, source, kafka, topic) -> None:
    from tests.services import create_topic

    name = topic()
    produce(kafka.servers, name, ["a", "b", "c"])
    stream.run(source(topics=[name], starting="earliest"))
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    (deleted,) = admin.delete_topics([name]).values()
    deleted.result(30)
    time.sleep(1)
    create_topic(kafka.servers, name)
    produce(kafka.servers, name, ["x"])
    query = stream.run(source(topics=[name], starting="earliest"), processingTime="0 seconds")
    with pytest.raises(Exception, match=r"(?s)."):
        query.awaitTermination(120)
    with pytest.raises(Fault, match="ends at offset 1 and should go on at 3; the topic was deleted and made anew"):
        source(topics=[name]).recover(stream.failure(query), spark, stream.checkpoint)


BAD = {
    "missing server": {"servers": None, "topics": ["t"], "format": "text"},
    "no topics": {"servers": "k", "format": "text"},
    "two kinds": {"servers": "k", "topics": ["t"], "topic_pattern": "t", "format": "text"},
    "ending": {"servers": "k", "topics": ["t"], "format": "text", "ending": "latest"},
    "static latest": {"servers": "k", "topics": ["t"], "format": "text", "read": "static", "starting": "latest"},
    "static rate": {"servers": "k", "topics": ["t"], "format": "text", "read": "static", "max_offsets_per_trigger": 1},
    "delay alone": {"servers": "k", "topics": ["t"], "format": "text", "max_trigger_delay": "1 s"},
    "two groups": {"servers": "k", "topics": ["t"], "format": "text", "group_id": "a", "group_id_prefix": "b"},
    "word": {"servers": "k", "topics": ["t"], "format": "text", "starting": "begin"},
    "moment": {"servers": "k", "topics": ["t"], "format": "text", "starting": {"timestamp": "noon"}},
    "two moments": {
        "servers": "k",
        "topics": ["t"],
        "format": "text",
        "starting": {"timestamp": 1, "timestamps": {"t": 1}},
    },
    "offset": {"servers": "k", "topics": ["t"], "format": "text", "starting": {"t": {0: -3}}},
    "jaas": {"servers": "k", "topics": ["t"], "format": "text", "kafka_options": {"sasl.jaas.config": "x"}},
    "metadata": {"servers": "k", "topics": ["t"], "format": "text", "metadata": ["value"]},
}


@pytest.mark.parametrize("given", BAD.values(), ids=BAD)
def test_keys_that_do_not_go_together_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Kafka.model_validate(given)


def test_moments_are_texts_or_milliseconds() -> None:
    assert to_moment("1970-01-01T00:00:01") == to_moment("1970-01-01T01:00:01+01:00") == to_moment(1_000) == 1_000


ORDERS = """
    pipeline: orders
    latency: low
    sources:
      orders:
        type: kafka
        connection: broker
        topics: [{topic}]
        starting: earliest
        format: {{type: json, schema: 'id BIGINT, amount DOUBLE'}}
        on_bad_record: {policy}
    steps: {{loud: {{sql: SELECT id AS n FROM orders}}}}
    sinks: {{out: {{of: loud, type: kafka, connection: broker, topic: {out}}}}}
"""


def test_a_pipeline_takes_its_cluster_from_a_connection(project_at, run_once, kafka, topic) -> None:
    name, out = topic(), topic()
    produce(kafka.servers, name, ['{"id": 1}', "{", '{"id": 2, "amount": "x"}', '{"id": 3}'])
    settings = f"name: shop\nconnections: {{broker: {{type: kafka, servers: '{kafka.servers}'}}}}\n"
    root = project_at(ORDERS.format(topic=name, out=out, policy="drop"), settings=settings)
    assert run_once(root).ok
    assert [json.loads(message.value() or b"") for message in consume(kafka.servers, out)] == [{"n": 1}, {"n": 3}]

    stops = project_at(
        ORDERS.format(topic=name, out=out, policy="fail").replace("orders\n", "stops\n", 1), settings=settings
    )
    result = run_once(stops, "stops")
    assert not result.ok
    assert any("not JSON: {" in str(problem) for problem in result.problems)


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("{type: kafka, topics: [t], format: text}", "names no cluster"),
        ("{type: kafka, servers: k, topics: [t], format: parquet}", "is not a format of messages"),
        ("{type: kafka, servers: k, topics: [t], format: json}", "`schema` is missing"),
        ("{type: kafka, servers: k, topics: [t], format: text, starting: begin}", "earliest"),
        ("{type: kafka, servers: k, topics: [t], format: text, startig: latest}", "did you mean `starting`"),
        (
            "{type: kafka, servers: k, topics: [t], format: text, kafka_options: {interceptor.classes: x}}",
            "class by its name",
        ),
        ("{type: kafka, servers: k, topics: [t], format: {type: avro}}", "without `schema`"),
    ],
)
def test_a_mistake_in_yaml_is_one_problem(judged, yaml: str, said: str) -> None:
    (problem,) = judged(f"pipeline: p\nsources: {{s: {yaml}}}\nsinks: {{o: {{of: s, type: console}}}}\n")
    assert said in str(problem)
