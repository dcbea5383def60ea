"""One running query, as Python sees it."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from penstock.checkpoint.read import batch_under_way, last_batch
from penstock.engine.build import OBSERVATION, Built
from penstock.engine.spark_problems import query_failed, spark_is_gone
from penstock.facts import ProgressFacts
from penstock.guarantees import Guarantee
from penstock.metrics.progress import from_spark
from penstock.problems import Problem
from penstock.references import Mask
from penstock.storage import Storage
from penstock.supervise.backlog import Backlog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class RunningQuery:
    """A handle on one query: what it is, what it does, and how to end it. Secrets are masked in all that it tells."""

    def __init__(
        self,
        built: Built,
        started: StreamingQuery,
        pipeline: str,
        checkpoint: str,
        guarantee: Guarantee,
        mask: Mask,
        storage: Storage,
        backlog: Backlog | None = None,
    ) -> None:
        self._built, self._started, self._mask = built, started, mask
        self._storage, self._backlog = storage, backlog
        self._last_seen = ""
        self.pipeline, self.checkpoint, self.guarantee = pipeline, checkpoint, guarantee

    @property
    def name(self) -> str:
        return self._built.query.name

    @property
    def id(self) -> str:
        """The same for the life of the checkpoint."""
        return str(self._started.id)

    @property
    def run_id(self) -> str:
        """New at each start."""
        return str(self._started.runId)

    @property
    def is_active(self) -> bool:
        try:
            return bool(self._started.isActive)
        except (ConnectionError, Py4JError):  # Spark has ended, and with it the query
            return False

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._mask.deeply(dict(self._started.status))
        return status

    @property
    def last_progress(self) -> dict[str, Any] | None:
        progress = self._started.lastProgress
        return None if progress is None else self._plain(progress)

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        return [self._plain(progress) for progress in self._started.recentProgress]

    @property
    def exception(self) -> Problem | None:
        """Why it failed, or None."""
        try:
            error = self._started.exception()
        except (ConnectionError, Py4JError):
            return spark_is_gone(self._built.query)
        return None if error is None else query_failed(error, self._built.query, self._mask)

    def progress_since(self, batch: int) -> list[ProgressFacts]:
        """The batches that were finished after `batch`, oldest first, as far as Spark still knows them."""
        try:
            last = self._started.lastProgress
        except (ConnectionError, Py4JError):
            return []  # Spark is gone; `exception` says so
        if last is None or last["timestamp"] == self._last_seen:
            return []
        self._last_seen = last["timestamp"]
        # An idle trigger reports too, under the number of a batch that is still to come.
        executed = [p for p in self.recent_progress if "addBatch" in p["durationMs"] and int(p["batchId"]) > batch]
        newest = {int(progress["batchId"]): progress for progress in executed}
        return [from_spark(self.name, newest[number], OBSERVATION) for number in sorted(newest)]

    @property
    def batch_under_way(self) -> int | None:
        """The batch that is planned and not committed."""
        return batch_under_way(self._storage, self.checkpoint)

    @property
    def last_commit(self) -> int:
        """The newest batch that is committed; -1 before the first."""
        last = last_batch(self._storage, self.checkpoint, "commits")
        return -1 if last is None else last

    @property
    def share(self) -> float | None:
        """How much of what waited at the start is taken, from 0 to 1, where it can be told."""
        return self._backlog.share(self._storage, self.checkpoint) if self._backlog else None

    def explain(self, extended: bool = False) -> str:
        """The plan of the last batch."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self._started.explain(extended)
        return self._mask(printed.getvalue())

    def table(self) -> DataFrame:
        """The rows that a memory sink holds."""
        return self._built.session.table(f"`{self._built.query.sink.name}`")

    def await_termination(self, timeout_seconds: float | None = None) -> bool:
        """Waits until it ends, or the time is over; tells whether it has ended. A failure is told by `exception`."""
        from pyspark.errors import StreamingQueryException

        try:
            ended = self._started.awaitTermination(timeout_seconds)  # type: ignore[arg-type] # fractions are fine
        except StreamingQueryException:
            return True
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        """Stops it at once; a batch under way is run again at the next start."""
        self._started.stop()

    def _plain(self, progress: Any) -> dict[str, Any]:
        text = progress.json if hasattr(progress, "json") else json.dumps(progress, default=str)
        plain: dict[str, Any] = json.loads(self._mask(text))
        return plain
