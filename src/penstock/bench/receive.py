"""Takes output records one at a time and notes when each came; a process of its own, so that nothing delays it.

A batch of messages would come only when it is full or its time-out is over, and add that to every latency.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.answers import Waiting, expected, received
from penstock.bench.generate import Schedule
from penstock.bench.workloads.every_workload import named
from penstock.bench.workloads.workload import InputRecord, Workload

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_IDLE_SECONDS = 0.25
_LOOKED_AT = 1_000
_SECONDS = 60.0
Output = tuple[int, bytes]
"""When it came, in microseconds, and its value."""


@dataclass(frozen=True)
class Reception:
    """What a receiver is told when it is started; schedules come later, on its standard input."""

    workload: str
    servers: str
    topic: str
    backlog: int
    """How many records wait before the contender starts."""
    first: int
    """When those were due."""
    folder: str
    """Where it leaves what came, a file for each schedule."""
    patience_seconds: float
    """How long to wait for answers after the last record was due."""

    def to_text(self) -> str:
        return json.dumps(asdict(self))


def receive(told: Reception) -> None:
    """Says when the first output came, and the name of a file with outputs when all that waited is answered.

    Then it is told schedules. When all of one is answered or its patience is over, it says the name of a file with what
    came, and waits for the next.
    """
    workload = named(told.workload)
    outputs: list[Output] = []
    answers = Answers(workload)
    answers.expect(workload.record(number, told.first) for number in range(told.backlog))
    with _consumer(told.servers, told.topic) as consumer:
        _say("up")
        while not outputs:
            _take(consumer, outputs, 0.1)
        _say(str(outputs[0][0]))
        _follow(consumer, outputs, answers, 0, math.inf)
        left = _leave(outputs, 0, told.folder)
        gc.disable()  # a pause of ours would count as theirs
        for line in sys.stdin:
            schedule = Schedule(**json.loads(line))
            answers.expect(schedule.later_records(workload))
            _follow(consumer, outputs, answers, schedule.end, schedule.end / 1_000_000 + told.patience_seconds)
            left = _leave(outputs, left, told.folder)


class Answers:
    """How many answers are still to come, told from outputs that are looked at a few at a time."""

    def __init__(self, workload: Workload) -> None:
        self._workload, self._step, self._waiting = workload, workload.model(), Waiting()
        self._seen = 0

    def expect(self, records: Iterable[InputRecord]) -> None:
        """Answers to these records are to come, after those to all records before."""
        self._waiting.expect(expected(self._workload, records, self._step))

    def behind(self, outputs: list[Output]) -> bool:
        return self._seen < len(outputs)

    def complete(self, outputs: list[Output]) -> bool:
        """Looks at some more outputs."""
        self._waiting.take(received(self._workload, outputs[self._seen : self._seen + _LOOKED_AT]))
        self._seen = min(self._seen + _LOOKED_AT, len(outputs))
        return not self._waiting.left


def _follow(consumer: Consumer, outputs: list[Output], answers: Answers, end: int, give_up: float) -> None:
    """Takes outputs until all answers are there, which is not before `end`, or until it is time to give up."""
    while time.time() < give_up:
        ended = time.time() * 1_000_000 >= end
        if _take(consumer, outputs, 0.0 if ended and answers.behind(outputs) else _IDLE_SECONDS) or not ended:
            continue
        # A little at a time, and only while nothing comes: what comes meanwhile would be noted too late.
        if answers.complete(outputs):
            return


def _leave(outputs: list[Output], left: int, folder: str) -> int:
    """Those that were not left yet, in a file whose name it says. How many are left now."""
    file = Path(folder) / f"received-{left}"
    file.write_bytes(b"".join(b"%d\t%s\n" % output for output in outputs[left:]))
    _say(str(file))
    return len(outputs)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


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
