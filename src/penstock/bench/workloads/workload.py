"""The shape of a workload: one job, told to every contender in its own words, and a model that knows the answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.bench.job import Job

_ENCODER = json.JSONEncoder(separators=(",", ":"))  # made once: `json.dumps` makes one for each record
Fields = Mapping[str, Any]
"""The value of a record, input or output: a JSON object."""
Step = Callable[[Fields], Iterable[Fields]]
"""One input record in, its output records out. It may remember."""


@dataclass(frozen=True)
class InputRecord:
    """An input record as it lies in the topic."""

    key: str
    value: str


@dataclass(frozen=True)
class Answer:
    """What an output record says: of what, in which version, and the rest.

    A later version of the same tag holds all that an earlier one says. So a contender that writes each change and one
    that writes every tenth agree in the end, and a record counts as answered by the first output that covers it.
    """

    tag: str
    version: int
    rest: str


@dataclass(frozen=True)
class FlinkSql:
    """A job in Flink's SQL: the columns of the tables `records` and `results`, and what goes from one to the other."""

    records: str
    results: str
    insert: str
    key: str = ""
    """The columns of the key of `results`, where a row replaces an earlier one."""
    first: tuple[str, ...] = ()
    """Statements before that."""


@dataclass(frozen=True)
class Workload:
    """A job with its records, its model, and the same job in the words of each contender."""

    name: str
    title: str
    record: Callable[[int, int], InputRecord]
    """From a number, and the time at which it is due in microseconds, to the record. Record 0 must have an output."""
    model: Callable[[], Step]
    """A fresh plain-Python model of the job. It is also the work that the floor does."""
    outcome: Callable[[Fields], Answer]
    pipeline: str
    """The job for Penstock, without `latency` and `queries`. It reads `${SERVERS}`, `${INPUT}` and `${OUTPUT}`."""
    query: str
    """The name of the one query of that pipeline."""
    schema: str
    """The columns of a record's value, as Spark's DDL."""
    by_hand: Callable[[DataFrame, Job], DataFrame]
    """The job in plain PySpark, on rows of that schema."""
    flink: FlinkSql | None = None
    """The job in Flink's SQL; None where Flink does not take part."""
    mode: str = "append"
    keeps_state: bool = False
    runs_python: bool = False
    """Whether rows go through Python workers."""
    drains: bool = False
    """Whether the records are there before the contender starts, and it takes them as fast as it can."""
    reads: Literal["topic", "folder"] = "topic"
    """Where records come in; in a folder each is a file."""
    most_rate: float = math.inf
    """No more records a second than this, whatever was asked for."""
    backlog: int = 1
    """How many records wait before the contender starts, where there is a rate."""
    crashes: bool = False
    """Whether it is killed in the middle, and started again."""
    trigger: str | None = None
    """How often a batch begins; without it, as often as the contender likes."""
    boundary: str | None = None
    """How long a batch of Real-Time Mode lasts, where the pause between two is sought; without it, no batch ends."""
    partitions: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    """What plain PySpark must set for the job to run at all."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Further files of the job, by their path in its folder."""

    def in_plain_spark(self, records: DataFrame, job: Job) -> DataFrame:
        """From the rows of Spark's Kafka source to those of its Kafka sink."""
        rows = records.selectExpr(f"from_json(CAST(value AS STRING), '{self.schema}') AS record").select("record.*")
        return self.by_hand(rows, job).selectExpr("to_json(struct(*)) AS value")

    def place_files(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def code(name: str) -> str:
    """The text of a module in the folder `code`: users keep such a module in their project."""
    return Path(__file__).with_name("code").joinpath(name).read_text(encoding="utf-8")


def fields_of(value: str | bytes) -> dict[str, Any]:
    """The JSON object in a record's value."""
    parsed: dict[str, Any] = json.loads(value)
    return parsed


def event_time(sent: int) -> str:
    """Microseconds as a timestamp in JSON."""
    return datetime.fromtimestamp(sent / 1_000_000, UTC).isoformat(timespec="microseconds")


def text_of(fields: Fields) -> str:
    return _ENCODER.encode(fields)
