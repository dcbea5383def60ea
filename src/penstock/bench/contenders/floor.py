"""The floor: a loop in plain Python over confluent-kafka. Nothing that goes through Kafka can be much quicker."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.bench.contenders.contender import Contender, Launch
from penstock.bench.job import Job, from_text
from penstock.bench.workloads.every_workload import named
from penstock.bench.workloads.workload import Workload, fields_of, text_of

_SECONDS = 60.0
_EMPTY_POLLS = 3
_PAUSE_SECONDS = 0.005


def launch(workload: Workload, job: Job) -> Launch:
    return Launch((sys.executable, "-m", __name__, job.to_text()))


def loop(job: Job) -> None:
    """Takes a record, does the work of the model, sends what comes out; record by record."""
    from confluent_kafka import Producer

    workload = named(job.workload)
    quick = {"linger.ms": 0, "max.in.flight.requests.per.connection": 1}  # records that come meanwhile go together
    producer = Producer(
        {"bootstrap.servers": job.servers, "log_level": 0} | ({"linger.ms": 5} if job.drains else quick)
    )
    step = workload.model()
    for value in _from_topic(job) if workload.reads == "topic" else _from_folder(Path(job.input)):
        for fields in step(fields_of(value)):
            _produce(producer, job.output, text_of(fields))
        producer.poll(0)
    producer.flush(_SECONDS)


def _from_topic(job: Job) -> Iterator[bytes]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": job.servers, "log_level": 0, "group.id": "floor", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(job.input, number, OFFSET_BEGINNING) for number in range(job.partitions)])
    empty = 0
    while not (job.drains and empty == _EMPTY_POLLS):
        message = consumer.poll(1.0)
        if message is None or message.error():
            empty += 1
            continue
        empty = 0
        yield message.value() or b""
    consumer.close()


def _from_folder(folder: Path) -> Iterator[bytes]:
    """What is new in the folder, which is listed again and again."""
    seen: set[str] = set()
    while True:
        new = sorted(one.name for one in os.scandir(folder) if one.name not in seen and one.name[0] != ".")
        seen.update(new)
        for name in new:
            yield (folder / name).read_bytes()
        if not new:
            time.sleep(_PAUSE_SECONDS)


def _produce(producer: Any, topic: str, value: str) -> None:
    while True:
        try:
            producer.produce(topic, value)
            return
        except BufferError:
            producer.poll(0.01)


CONTENDER = Contender("floor", "a loop in plain Python: consume, do the work, produce", launch)

if __name__ == "__main__":
    loop(from_text(sys.argv[1]))
