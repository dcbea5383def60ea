"""What tests do with a broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from threading import Event, Thread

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_SECONDS = 180.0
_QUIET = {"log_level": 0}  # what a client logs while a broker restarts is no news

Bytes = str | bytes | None


def create_topic(servers: str, topic: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": servers, **_QUIET})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    for made in admin.create_topics([new], operation_timeout=_SECONDS).values():
        made.result(_SECONDS)
    deadline = time.monotonic() + _SECONDS
    while topic not in admin.list_topics(timeout=_SECONDS).topics:  # it is made a moment before it is seen
        assert time.monotonic() < deadline, f"{topic} is not seen"
        time.sleep(0.05)


def produce(
    servers: str,
    topic: str,
    values: Iterable[Bytes],
    key: Bytes = None,
    headers: Mapping[str, Bytes] | None = None,
    partition: int | None = None,
) -> None:
    """Writes the values in order, all with this key and these headers; returns when the broker has them all."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "message.max.bytes": 10_000_000,
            "topic.metadata.propagation.max.ms": 5_000,  # for so long a topic that is not there is waited for
            **_QUIET,
        }
    )
    failures: list[KafkaError] = []
    more = {} if partition is None else {"partition": partition}
    for value in values:
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    key,
                    headers=list((headers or {}).items()),
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                    **more,
                )
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(_SECONDS)
    if failures:
        raise KafkaException(failures[0])
    assert left == 0, f"{left} messages did not arrive within {_SECONDS} s"


def consume(servers: str, topic: str, isolation: str = "read_committed") -> list[Message]:
    """All that the topic holds now, partition by partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,  # the end of a partition is told by a fetch that waited in vain, 500 ms by default
            **_QUIET,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        messages, open_partitions = [], set(partitions)
        while open_partitions:
            message = consumer.poll(_SECONDS)
            assert message is not None, f"`{topic}` gave nothing for {_SECONDS} s"
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
    return sorted(messages, key=lambda message: (message.partition(), message.offset()))


def await_rows(servers: str, topic: str, count: int) -> None:
    """Waits until so many rows are in a topic."""
    deadline = time.monotonic() + 2 * _SECONDS
    while len(consume(servers, topic)) < count:
        assert time.monotonic() < deadline, f"{count} rows did not come"
        time.sleep(0.2)


def await_true(holds: Callable[[], bool]) -> None:
    """Waits until something holds. What raises does not hold yet: a table that is still to be made."""
    deadline = time.monotonic() + 2 * _SECONDS
    while True:
        with suppress(Exception):
            if holds():
                return
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.2)


class LiveRecords:
    """Records with ids from 0 on, that come in a thread of their own for as long as the block lasts."""

    def __init__(self, servers: str, topic: str) -> None:
        self.count = 0
        self._over = Event()
        self._thread = Thread(target=produce, args=(servers, topic, self._values()))

    def _values(self) -> Iterator[str]:
        while not self._over.wait(0.05):
            for _ in range(5):
                yield json.dumps({"id": self.count})
                self.count += 1

    def __enter__(self) -> LiveRecords:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()
