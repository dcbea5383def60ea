"""What a running query reports of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Unread:
    """How much a source has that a query has not committed yet."""

    count: int
    unit: Literal["record", "file", "version"]


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

    def to_json(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_in_per_second": round(self.rows_in_per_second, 3),
            "rows_processed_per_second": round(self.rows_processed_per_second, 3),
            "duration_ms": self.duration_ms,
            "watermark": self.watermark,
            "late_rows": self.late_rows,
            "late_groups": self.late_groups,
            "state_rows": self.state_rows,
            "bad_rows": self.refused,
            "behind": self.behind,
            "latency": {source: asdict(times) for source, times in self.times.items()},
        }

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
    def set_aside(self) -> dict[str, int]:
        """By source or step, the rows that became dead letters. Also the nodes that judged rows and kept them all."""
        return {node: counts.get("dead_letters", 0) for node, counts in self.checks.items()}

    @property
    def bad_share(self) -> float:
        """The greatest share of the rows of one source or step that were bad, from 0 to 1."""
        shares = (counts.get("refused", 0) / counts["rows"] for counts in self.checks.values() if counts.get("rows"))
        return max(shares, default=0.0)
