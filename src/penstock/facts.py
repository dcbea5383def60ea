"""Frozen inputs of judgement: gathered once at the edge, then judged by pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    state_rows: int | None
    behind: float | None = None
    """Records that the sources still have, where they say so."""
    checks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By source or step: the rows that it judged, how many were `refused`, became `dead_letters`, or failed a check."""
    read: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By source, as Spark describes it: the rows that were read, and the place up to which."""
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @property
    def refused(self) -> int:
        """Rows that were bad and did not go on."""
        return sum(counts.get("refused", 0) for counts in self.checks.values())

    @property
    def bad_share(self) -> float:
        """The greatest share of the rows of one source or step that were bad, from 0 to 1."""
        shares = (counts.get("refused", 0) / counts["rows"] for counts in self.checks.values() if counts.get("rows"))
        return max(shares, default=0.0)
