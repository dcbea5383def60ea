"""Frozen inputs of judgement: gathered once at the edge, then judged by pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal


@dataclass(frozen=True)
class FolderFacts:
    """What a path of a pipeline is on disk, when it was looked at."""

    path: str
    exists: bool
    is_file: bool = False
    writable: bool = True
    files: tuple[str, ...] = ()
    """Names of the files in it, the first ones of many."""
    partition_columns: tuple[str, ...] = ()
    """The keys of its `key=value` sub-folders, outermost first."""
    last_sink_batch: int | None = None
    """The newest batch in the log that Spark's file sink keeps of its folder."""


@dataclass(frozen=True)
class BatchCode:
    """What the text of a user's function for whole batches tells."""

    writes: int
    """How often it writes rows."""
    uses_batch: bool
    """Does it look at the batch's number, or ask it to do something once?"""


@dataclass(frozen=True)
class ReadFile:
    """A file that a query has read, as its checkpoint remembers it."""

    path: str
    modified_ms: int
    batch: int
    modified_now_ms: int | None
    """None when the file is gone."""


@dataclass(frozen=True)
class CheckpointFacts:
    """One generation of a query's checkpoint."""

    query: str
    generation: int
    path: str
    id: str
    """The identity that its manifest gives it."""
    spark_id: str | None = None
    """The identity that Spark finds in it; None when that is lost."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings fixed at its birth."""
    partition_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By source, the partition columns that it was born with."""
    last_offset: int | None = None
    last_commit: int | None = None
    read_files: tuple[ReadFile, ...] = ()

    @property
    def batch_under_way(self) -> int | None:
        """A batch whose offsets are planned and whose commit is not written yet."""
        if self.last_offset is None or self.last_offset == self.last_commit:
            return None
        return self.last_offset


@dataclass(frozen=True)
class StateVariable:
    """A state variable of a processor. Schemas are in the JSON that Spark keeps them in."""

    name: str
    kind: str
    """`value`, `list` or `map`."""
    key: Mapping[str, Any]
    """The columns that rows are grouped by."""
    values: tuple[Mapping[str, Any], ...]
    """What it holds, in every version that some of it may still be written in, the newest last."""
    map_key: Mapping[str, Any] | None = None
    ttl: bool = False


@dataclass(frozen=True)
class ProcessorState:
    """The state of one `process` step: as its class declares it, or as its checkpoint has it."""

    time: str
    mode: str
    variables: tuple[StateVariable, ...]
    encoding: str = "avro"
    """How a checkpoint writes it; only `avro` can follow a changed schema."""


@dataclass(frozen=True)
class RecordTimes:
    """How late the records of a source came in one batch: from the time that each has until Spark had it in hand."""

    p50_ms: int
    p95_ms: int
    p99_ms: int
    max_ms: int
    records: int
    """How many were looked at."""
    first_at_ms: int
    """When Spark had the first of them, in milliseconds since 1970."""
    last_at_ms: int


@dataclass(frozen=True)
class ProgressFacts:
    """One batch of one query, as Spark reported it."""

    query: str
    batch: int
    at: str
    rows_in: int
    rows_out: int | None
    rows_in_per_second: float
    rows_processed_per_second: float
    duration_ms: int
    watermark: str | None
    late_rows: int
    """Rows that were dropped because they came behind the watermark."""
    state_rows: int | None
    late_groups: int = 0
    """The same at aggregations: Spark puts rows of one key and window together in each task, and drops the groups."""
    behind: float | None = None
    """Records that the sources still have, where they say so."""
    checks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By source or step: the rows that it judged, how many were `refused`, became `dead_letters`, or failed a check."""
    read: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By source, as Spark describes it: the rows that were read, and the place up to which."""
    times: Mapping[str, RecordTimes] = field(default_factory=dict)
    """By source, how late its records came, where that is measured: in Real-Time Mode."""
    run: str = ""
    """Spark's name for what ran from one start of the query to its end."""
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @property
    def slowest(self) -> RecordTimes | None:
        """The times of the source whose records came latest."""
        return max(self.times.values(), key=lambda one: (one.p99_ms, one.max_ms), default=None)

    @property
    def phases(self) -> Mapping[str, int]:
        """What the batch spent its time with, in milliseconds, by Spark's own names."""
        return self.raw.get("durationMs") or {}

    @property
    def refused(self) -> int:
        """Rows that were bad and did not go on."""
        return sum(counts.get("refused", 0) for counts in self.checks.values())

    @property
    def bad_share(self) -> float:
        """The greatest share of the rows of one source or step that were bad, from 0 to 1."""
        shares = (counts.get("refused", 0) / counts["rows"] for counts in self.checks.values() if counts.get("rows"))
        return max(shares, default=0.0)


OperatorKind = Literal[
    "source",
    "watermark",
    "project",
    "filter",
    "aggregate",
    "distinct",
    "join",
    "deduplicate",
    "deduplicate_within_watermark",
    "process",
    "pandas_state",
    "limit",
    "offset",
    "sort",
    "sample",
    "window_function",
    "union",
    "except",
    "intersect",
    "other",
]
JoinKind = Literal["inner", "left_outer", "right_outer", "full_outer", "left_semi", "left_anti", "other"]
TimeMode = Literal["none", "processing_time", "event_time"]


@dataclass(frozen=True)
class Expression:
    """A column, a constant, or a function of others. Operators such as `>=` are functions too."""

    name: str
    """A function's name in lower case; of a column its identity; empty for a constant."""
    kind: Literal["column", "constant", "function"] = "function"
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    """An aggregate over distinct values."""
    value: str | None = None
    """Of a constant, as text; a span of time in milliseconds."""

    def walk(self) -> Iterator[Expression]:
        yield self
        for argument in self.arguments:
            yield from argument.walk()


@dataclass(frozen=True)
class Column:
    """A column that an operator gives: its identity, and what it is made of."""

    id: str
    made_of: Expression


@dataclass(frozen=True)
class Operator:
    """One operator of a query, as Spark's analysed plan or the SQL shows it. A tree: its inputs are operators too."""

    kind: OperatorKind
    node: str
    """The source or step in which it stands."""
    inputs: tuple[Operator, ...] = ()
    streams: bool = False
    """Of a leaf: does it bring new rows again and again?"""
    name: str = ""
    """Spark's own name for it."""
    keys: tuple[Expression, ...] = ()
    """What it groups by, or compares to find duplicates."""
    columns: tuple[Column, ...] | None = None
    """What it gives; None where it hands on what it gets."""
    condition: Expression | None = None
    join: JoinKind = "inner"
    mode: str | None = None
    """The output mode that a step with state of its own was written for."""
    time: TimeMode = "none"
    """The clock of a step with state of its own."""
    subqueries: tuple[Operator, ...] = ()
    """SELECTs that stand in its expressions."""

    @cached_property
    def is_streaming(self) -> bool:
        return self.streams or any(one.is_streaming for one in self.inputs)

    def walk(self) -> Iterator[Operator]:
        """It and everything below it, itself first."""
        yield self
        for one in self.inputs:
            yield from one.walk()

    def expressions(self) -> Iterator[Expression]:
        """Every expression in it, with its parts."""
        for one in (*self.keys, *(column.made_of for column in self.columns or ()), *filter(None, [self.condition])):
            yield from one.walk()
