"""What happens to running queries, as frozen values. What shows, stores or counts a run is a fold over them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from penstock.facts.failure import Failure
from penstock.facts.observed import ProgressFacts, Unread
from penstock.problems import Problem

Side = Literal["source", "sink"]
Ending = Literal["done", "stopped", "failed"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to one query."""

    pipeline: str
    query: str
    at: float
    """Seconds since 1970."""

    is_news: ClassVar[bool] = True
    """Is it worth a line in a log? Otherwise it only keeps a view up to date."""

    @property
    def kind(self) -> str:
        """`BatchDone` is `batch_done`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def details(self) -> dict[str, Any]:
        """What this kind of event adds, as plain data."""
        return {name: value for name, value in asdict(self).items() if name not in ("pipeline", "query", "at")}

    def to_json(self) -> dict[str, Any]:
        at = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"event": self.kind, "at": at, "pipeline": self.pipeline, "query": self.query} | self.details()


@dataclass(frozen=True, kw_only=True)
class QueryStarted(Event):
    """Spark runs the query: for the first time in this run, or after a restart."""

    id: str
    """The same for the life of the checkpoint."""
    run: str
    """New at each start."""
    promise: str
    """What the sinks promise, such as `exactly-once`."""


@dataclass(frozen=True, kw_only=True)
class Working(Event):
    """A batch is planned or computed."""

    is_news = False


@dataclass(frozen=True, kw_only=True)
class Idle(Event):
    """The query waits for rows, or for its next trigger."""

    is_news = False


@dataclass(frozen=True, kw_only=True)
class RowsRead(Event):
    """Rows that a batch has read before it ends. Real-time batches report them."""

    is_news = False
    batch: int
    rows: int
    rows_per_second: float | None = None
    """Over the last seconds; None before there are two counts."""


@dataclass(frozen=True, kw_only=True)
class BacklogTaken(Event):
    """How much of the input that waited at the start is read, from 0 to 1."""

    is_news = False
    share: float


@dataclass(frozen=True, kw_only=True)
class LagSeen(Event):
    """What the sources had at this moment that the query had not committed, asked while its batch runs."""

    is_news = False
    unread: Mapping[str, Unread]
    """By source. One that cannot be asked is left out."""


@dataclass(frozen=True, kw_only=True)
class BatchDone(Event):
    """A batch is committed."""

    progress: ProgressFacts

    def details(self) -> dict[str, Any]:
        return self.progress.to_json()


@dataclass(frozen=True, kw_only=True)
class RowsSetAside(Event):
    """Rows of a batch that became dead letters, by source or step."""

    batch: int
    rows: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class FilesPassedOver(Event):
    """Files of a batch that were gone before Spark read them, and that `ignore_missing_files` lets it pass over."""

    source: str
    batch: int
    files: int
    example: str
    """The path of one of them."""


@dataclass(frozen=True, kw_only=True)
class LinesDropped(Event):
    """Lines of a CSV file that hold control characters only. Spark drops them as blank; they count as bad records."""

    source: str
    batch: int
    file: str
    lines: tuple[int, ...]
    """Their numbers, from 1."""
    message: str


@dataclass(frozen=True, kw_only=True)
class SchemaChanged(Event):
    """A source has taken in new columns, or a new schema of its records. The query restarts to read by it."""

    source: str


@dataclass(frozen=True, kw_only=True)
class RefreshDue(Event):
    """A static source has been kept for as long as its `refresh` allows. The query restarts to read it again."""

    source: str


@dataclass(frozen=True, kw_only=True)
class Away(Event):
    """A source or a sink cannot be reached. Reported once, until it is back."""

    node: str
    side: Side
    problem: Problem

    def details(self) -> dict[str, Any]:
        return super().details() | {"problem": self.problem.to_json()}


@dataclass(frozen=True, kw_only=True)
class Back(Event):
    """A source or a sink that was away can be reached again."""

    node: str
    side: Side
    seconds: float
    """How long it was away, as far as the run has seen."""


@dataclass(frozen=True, kw_only=True)
class Failed(Event):
    """The query ended with a failure. What follows is `restarting` or `stopped`."""

    failure: Failure
    adapted: str | None = None
    """The source that has adapted to what made it fail."""
    untried: bool = False
    """Could Spark not run the failed task again? In Continuous Processing a restart does that."""
    offsets: Mapping[str, str] = field(default_factory=dict)
    """By source, what the failed batch reads: from where, up to where."""

    def details(self) -> dict[str, Any]:
        failure = self.failure
        told = {"kind": failure.kind, "cause": failure.cause, "batch": failure.batch, "may_pass": failure.may_pass}
        return {"failure": told | {"problem": failure.problem.to_json()}, "offsets": dict(self.offsets)}


@dataclass(frozen=True, kw_only=True)
class Restarting(Event):
    """The query starts again after a delay."""

    reason: str
    delay_seconds: float
    number: int
    """Which restart of this run it is, from 1."""
    planned: bool = False
    """Does it follow a schedule or a new schema, and not a failure?"""


@dataclass(frozen=True, kw_only=True)
class Stopping(Event):
    """The query was asked to stop. The batch under way commits first."""


@dataclass(frozen=True, kw_only=True)
class Stopped(Event):
    """The query has ended for good: all input read, stopped on request, or failed."""

    state: Ending
    problem: Problem | None = None

    def details(self) -> dict[str, Any]:
        return {"state": self.state, "problem": self.problem and self.problem.to_json()}
