"""Records of a Kafka topic, read and written from the driver without Spark."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connections.kafka import KafkaAddress
from penstock.connections.kafka_cluster import Cluster
from penstock.problems import Fault

if TYPE_CHECKING:
    from confluent_kafka import Consumer

GONE = "KAFKA003"
_QUIET_SECONDS = 30.0
_DELIVERY_SECONDS = 60.0
_LARGEST_BYTES = 1_000_000_000
_READ_AT_ONCE = 500
_LOGGER = logging.getLogger("penstock.kafka")

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class KafkaRecord:
    """One record of a topic."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None


def ends_of(address: KafkaAddress, topic: str) -> dict[int, int]:
    """By partition, the offset of the next record. Raises Fault, also if the topic is gone."""
    if address.is_for_java_alone:
        raise Fault("KAFKA001", f"the topic `{topic}` can be reached by Spark alone: the key stores are of Java's kind",
                    "use stores of type PEM", ("ssl_keystore_type",))  # fmt: skip
    cluster = Cluster(address, ("connection",) if getattr(address, "connection", None) else ("servers",))
    partitions = cluster.partitions().get(topic)
    if not partitions:
        raise Fault(GONE, f"the topic `{topic}` is not there, or this user may not see it",
                    "make it again, or mend its name")  # fmt: skip
    _, ends = cluster.offsets((topic, partition) for partition in partitions)
    return ends[topic]


def read(address: KafkaAddress, topic: str, since: Mapping[int, int] | None = None) -> Iterator[KafkaRecord]:
    """What the topic holds now, partition by partition in order; `since` gives the first offsets. Raises Fault."""
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    ends = ends_of(address, topic)
    places = [
        TopicPartition(topic, partition, OFFSET_BEGINNING if since is None else since.get(partition, OFFSET_BEGINNING))
        for partition, end in ends.items()
        if end > (since or {}).get(partition, 0)
    ]
    consumer = _consumer(address)
    try:
        consumer.assign(places)
        yield from _until_the_end(consumer, topic, {place.partition: ends[place.partition] for place in places})
    finally:
        consumer.close()


def _until_the_end(consumer: Consumer, topic: str, ends: dict[int, int]) -> Iterator[KafkaRecord]:
    from confluent_kafka import KafkaError

    deadline = time.monotonic() + _QUIET_SECONDS
    while ends:
        messages = consumer.consume(_READ_AT_ONCE, timeout=1.0)
        if messages:
            deadline = time.monotonic() + _QUIET_SECONDS
        elif time.monotonic() > deadline:
            raise Fault("KAFKA001", f"the topic `{topic}` gives no records", "look whether its brokers run")
        for message in messages:
            partition, offset, error = message.partition() or 0, message.offset() or 0, message.error()
            if error is None:
                if partition in ends:
                    headers: Any = message.headers()
                    yield KafkaRecord(message.value(), message.key(), tuple(headers or ()), partition)
                    if offset + 1 >= ends[partition]:
                        del ends[partition]
            elif error.code() == KafkaError._PARTITION_EOF:
                ends.pop(partition, None)  # what is left of it are marks of transactions
            elif not error.retriable():
                raise Fault("KAFKA001", f"the topic `{topic}` cannot be read: {error.str()}", "look at its rights")


def write(address: KafkaAddress, topic: str, records: Sequence[KafkaRecord]) -> list[str | None]:
    """Sends the records in order; for each, why the broker has not taken it, or None. Returns when all is known."""
    from confluent_kafka import KafkaException, Producer

    idempotent = {"enable.idempotence": True, "acks": "all", "delivery.timeout.ms": int(_DELIVERY_SECONDS * 1_000)}
    producer: Any = Producer(address.client_config() | idempotent | {"message.max.bytes": _LARGEST_BYTES} | _quiet(),
                        logger=_LOGGER)  # fmt: skip
    refusals: list[str | None] = ["no answer came in time"] * len(records)

    def delivered(index: int, error: Any) -> None:
        refusals[index] = error.str() if error is not None else None

    for index, record in enumerate(records):
        place = {} if record.partition is None else {"partition": record.partition}
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    on_delivery=lambda error, _, index=index: delivered(index, error),
                    **place,
                )
                break
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                delivered(index, error.args[0])
                break
    producer.flush(_DELIVERY_SECONDS + 5)
    return refusals


def _consumer(address: KafkaAddress) -> Consumer:
    from confluent_kafka import Consumer

    alone = {"group.id": "penstock", "enable.auto.commit": False, "enable.partition.eof": True}
    return Consumer(address.client_config() | alone | {"auto.offset.reset": "earliest"} | _quiet(), logger=_LOGGER)


def _quiet() -> dict[str, Any]:
    _LOGGER.propagate = False
    _LOGGER.addHandler(logging.NullHandler())
    return {"log_level": 0, "error_cb": lambda error: None}
