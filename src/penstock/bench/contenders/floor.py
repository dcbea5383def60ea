"""The floor: a loop in plain Python over confluent-kafka. Nothing that goes through Kafka can be much quicker."""

from __future__ import annotations

import sys
from typing import Any

from penstock.bench.contenders.contender import Contender, Launch
from penstock.bench.job import Job, from_text
from penstock.bench.workloads.all import named
from penstock.bench.workloads.workload import Workload, fields_of, text_of

_SECONDS = 60.0
_EMPTY_POLLS = 3


def launch(workload: Workload, job: Job) -> Launch:
    return Launch((sys.executable, "-m", __name__, job.to_text()))


def loop(job: Job) -> None:
    """Takes a record, does the work of the model, sends what comes out; record by record."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

    common = {"bootstrap.servers": job.servers, "log_level": 0}
    producer = Producer(common | {"linger.ms": 5 if job.drains else 0})
    consumer = Consumer(common | {"group.id": "floor", "enable.auto.commit": False, "fetch.wait.max.ms": 500})
    consumer.assign([TopicPartition(job.input, number, OFFSET_BEGINNING) for number in range(job.partitions)])
    step = named(job.workload).model()
    empty = 0
    while not (job.drains and empty == _EMPTY_POLLS):
        message = consumer.poll(1.0)
        if message is None or message.error():
            empty += 1
            continue
        empty = 0
        for fields in step(fields_of(message.value() or b"")):
            _produce(producer, job.output, text_of(fields))
        producer.poll(0)
    producer.flush(_SECONDS)
    consumer.close()


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
