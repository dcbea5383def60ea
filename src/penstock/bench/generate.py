"""An open-loop generator: record i is due at its time, whatever the system under test does.

A generator that waits for the system hides the very delays that it should measure. Here a late record is sent late, and
its latency counts from the time at which it was due.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.bench.workloads.every_workload import named
from penstock.bench.workloads.workload import InputRecord, Workload

_SECONDS = 60.0
_LEAST_SLEEP_SECONDS = 0.000_5
_NOON = 1_767_268_800_000_000
"""Noon of 1 January 2026, when the first of the records that wait is due."""
_APART = 50_000


@dataclass(frozen=True)
class Schedule:
    """When records are due: some wait before the start, then one each `1 / rate` seconds. Times are in microseconds."""

    workload: str
    servers: str
    into: str
    """The topic, or the folder."""
    first: int
    backlog: int
    """How many records wait; they were due at `first`."""
    start: int
    rate: float
    count: int
    """How many records come after those."""

    def due(self, number: int) -> int:
        since = number - self.backlog
        return self.first if since < 0 else self.start + round(since * 1_000_000 / self.rate)

    @property
    def numbers(self) -> range:
        """Of the records that come after those that wait."""
        return range(self.backlog, self.backlog + self.count)

    @property
    def end(self) -> int:
        """When the last one is due."""
        return self.due(self.backlog + self.count - 1)

    def records(self, workload: Workload) -> Iterator[InputRecord]:
        """All of them, in order, those that wait first."""
        return (workload.record(number, self.due(number)) for number in range(self.numbers.stop))

    def later_records(self, workload: Workload) -> Iterator[InputRecord]:
        """Without those that wait."""
        return (workload.record(number, self.due(number)) for number in self.numbers)

    def to_text(self) -> str:
        return json.dumps(asdict(self))


def waiting_records(workload: Workload, count: int) -> Iterator[InputRecord]:
    """The records of a workload that drains: 50 milliseconds apart, the same in every run."""
    return (workload.record(number, _NOON + number * _APART) for number in range(count))


def send(servers: str, topic: str, records: Iterable[InputRecord]) -> None:
    """Writes records as fast as it goes, and returns when the broker has them all."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 0})
    for record in records:
        while True:
            try:
                producer.produce(topic, record.value, record.key)
                break
            except BufferError:
                producer.poll(0.1)
    _flush(producer)


def put_backlog(workload: Workload, servers: str, into: str, first: int) -> None:
    """Puts the records that wait where the contender will find them."""
    records = (workload.record(number, first) for number in range(workload.backlog))
    if workload.reads == "topic":
        send(servers, into, records)
        return
    for number, record in enumerate(records):
        write_file(Path(into), number, record)


def write_file(folder: Path, number: int, record: InputRecord) -> None:
    """A file with one record. It is there whole or not at all: Spark passes names with a dot over."""
    draft = folder / f".{number}"
    draft.write_text(f"{record.value}\n", encoding="utf-8")
    draft.rename(folder / f"{number:09d}.json")


def generate(schedule: Schedule) -> None:
    """Sends the records that do not wait, each when it is due."""
    workload = named(schedule.workload)
    if workload.reads == "topic":
        _produce(schedule, workload)
        return
    for number, record in zip(schedule.numbers, schedule.later_records(workload), strict=True):
        _wait(schedule.due(number))
        write_file(Path(schedule.into), number, record)


def _produce(schedule: Schedule, workload: Workload) -> None:
    from confluent_kafka import Producer

    # With one request under way, records that come meanwhile go together in the next. A request each, ten thousand
    # times a second, would be the load of the broker and not that of the contender.
    one_request = {"linger.ms": 0, "acks": 1, "max.in.flight.requests.per.connection": 1}
    producer = Producer({"bootstrap.servers": schedule.servers, "log_level": 0} | one_request)
    producer.list_topics(schedule.into, timeout=_SECONDS)
    for number in schedule.numbers:
        due = schedule.due(number)
        record = workload.record(number, due)
        _wait(due)
        producer.produce(schedule.into, record.value, record.key)
        producer.poll(0)
    _flush(producer)


def _wait(due: int) -> None:
    """Until it is due, and half a millisecond at least where it is not: to wake for each of many takes half a core."""
    early = due / 1_000_000 - time.time()
    if early > 0:
        time.sleep(max(early, _LEAST_SLEEP_SECONDS))


def _flush(producer: object) -> None:
    left = producer.flush(_SECONDS)  # type: ignore[attr-defined]
    if left:
        raise TimeoutError(f"{left} records did not reach the broker within {_SECONDS:g} s")


if __name__ == "__main__":
    generate(Schedule(**json.loads(sys.argv[1])))
