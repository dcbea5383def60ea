"""Takes output records one at a time and notes when each came; a process of its own, so that nothing delays it.

A batch of messages would come only when it is full or its time-out is over, and add that to every latency.
"""

from __future__ import annotations

import contextlib
import gc
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.answers import Waiting, expected, received
from penstock.bench.generate import Schedule
from penstock.bench.workloads.all import named

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_IDLE_SECONDS = 0.25
_LOOKED_AT = 1_000
_SECONDS = 60.0
Output = tuple[int, bytes]
"""When it came, in microseconds, and its value."""


@dataclass(frozen=True)
class Reception:
    """What a receiver is told when it is started; the schedule comes later, on its standard input."""

    servers: str
    topic: str
    file: str
    patience_seconds: float
    """How long to wait for answers after the last record was due."""

    def to_text(self) -> str:
        return json.dumps(asdict(self))


def receive(told: Reception) -> None:
    """Says when the first output came, is told the schedule, and ends when all is answered or patience is over."""
    outputs: list[Output] = []
    with _consumer(told.servers, told.topic) as consumer:
        sys.stdout.write("up\n")
        sys.stdout.flush()
        while not outputs:
            _take(consumer, outputs, 0.1)
        sys.stdout.write(f"{outputs[0][0]}\n")
        sys.stdout.flush()
        schedule = Schedule(**json.loads(sys.stdin.readline()))
        workload = named(schedule.workload)
        waiting, seen = Waiting(expected(workload, schedule.records(workload))), 0
        gc.disable()  # a pause of ours would count as theirs
        while time.time() < schedule.end / 1_000_000 + told.patience_seconds:
            behind = seen < len(outputs)
            ended = time.time() * 1_000_000 >= schedule.end
            if _take(consumer, outputs, 0.0 if ended and behind else _IDLE_SECONDS) or not ended:
                continue
            # A little at a time, and only while nothing comes: what comes meanwhile would be noted too late.
            waiting.take(received(workload, outputs[seen : seen + _LOOKED_AT]))
            seen = min(seen + _LOOKED_AT, len(outputs))
            if not waiting.left:
                break
    Path(told.file).write_bytes(b"".join(b"%d\t%s\n" % output for output in outputs))


def read_received(file: Path) -> list[Output]:
    """What a receiver has left."""
    lines = (line.split(b"\t", 1) for line in file.read_bytes().splitlines())
    return [(int(at), value) for at, value in lines]


def read_topic(servers: str, topic: str) -> list[Output]:
    """All that a topic holds, each with the time at which the broker took it, in the order of these."""
    from confluent_kafka import KafkaError

    outputs: list[Output] = []
    with _consumer(servers, topic, tells_ends=True) as consumer:
        ended = 0
        partitions = len(consumer.assignment())
        while ended < partitions:
            for message in consumer.consume(10_000, 1.0):
                error = message.error()
                if error is None:
                    outputs.append((message.timestamp()[1] * 1_000, message.value() or b""))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended += 1
    return sorted(outputs)


def _take(consumer: Any, outputs: list[Output], seconds: float) -> bool:
    message = consumer.poll(seconds)
    now = time.time_ns() // 1_000
    if message is None or message.error():
        return False
    outputs.append((now, message.value() or b""))
    return True


@contextlib.contextmanager
def _consumer(servers: str, topic: str, tells_ends: bool = False) -> Iterator[Consumer]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "penstock-bench",
            "enable.auto.commit": False,
            "enable.partition.eof": tells_ends,
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        yield consumer
    finally:
        consumer.close()


if __name__ == "__main__":
    receive(Reception(**json.loads(sys.argv[1])))
