"""Why a query failed, as a value: what kind of failure it is, its root cause, and whether it may pass by itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.problems import Problem

Kind = Literal[
    "bad_record",
    "new_columns",
    "unknown_schema_id",
    "data_loss",
    "checkpoint",
    "damaged_file",
    "missing_file",
    "source_away",
    "sink_away",
    "user_code",
    "worker_died",
    "spark_died",
    "out_of_memory",
    "disk_full",
    "other",
]
MAY_PASS: frozenset[Kind] = frozenset({"source_away", "sink_away", "worker_died", "out_of_memory", "disk_full"})
"""The kinds that may pass by themselves: the same query can succeed later although nobody changed anything."""


@dataclass(frozen=True)
class RecordAt:
    """A bad record: the node that judged it, the check that it failed, and where it is."""

    node: str
    check: str
    place: tuple[tuple[str, str | int], ...] = ()
    """Such as `(("topic", "orders"), ("partition", 0), ("offset", 7))`."""
    reason: str | None = None
    record: str | None = None
    """How the record begins."""


@dataclass(frozen=True)
class RefusedColumns:
    """Columns that a batch has and the schema version of its query does not have."""

    location: str
    """The folder of the schema's versions; empty where Spark, and not Penstock, refused the batch."""
    version: int
    columns: tuple[str, ...] = ()
    file: str = ""
    """A file that has them."""
    types: tuple[str, str] | None = None
    """The types of a column that the schema has in another type: the file's, the schema's."""


@dataclass(frozen=True)
class Failure:
    """What stopped a query. Two failures happened in the same way when `kind` and `cause` are equal."""

    kind: Kind
    problem: Problem
    cause: str
    """The root cause in a short text that is the same at each repetition: no times, addresses or task numbers."""
    batch: int | None = None
    """The batch under way when it failed, where Spark reports it."""
    paths: tuple[str, ...] = ()
    """The files that are damaged or missing."""
    record: RecordAt | None = field(default=None, compare=False)
    columns: RefusedColumns | None = None
    schema_id: int | None = None
    condition: str = ""
    """Spark's name of the error, such as `STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE`; empty where it has none."""

    @property
    def may_pass(self) -> bool:
        """Can the same query succeed later although nobody changes anything?"""
        return self.kind in MAY_PASS
