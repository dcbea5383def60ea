"""Which batches of a running query are planned, and which are committed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

from penstock import spark_internals
from penstock.engine.build import Started
from penstock.spark_internals import SPARK_IS_GONE
from penstock.storage.batch_log import newest_batch
from penstock.storage.storage import Storage, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Log = Literal["offsets", "commits"]


class QueryLogs:
    """The offset log and the commit log of one run of a query.

    With asynchronous progress Spark has newer batches in memory than on disk. Then Spark is asked, else the disk.
    """

    def __init__(self, started: Started, storage: Storage, checkpoint: str) -> None:
        self._streaming, self._is_async = started.streaming, started.interval is not None
        self._storage, self._checkpoint = storage, checkpoint

    @property
    def planned(self) -> int:
        """The newest batch that has begun; -1 before the first."""
        return self._newest("offsets")

    @property
    def committed(self) -> int:
        """The newest batch that is done; -1 before the first."""
        return self._newest("commits")

    @property
    def under_way(self) -> int | None:
        """The batch that is planned and not committed."""
        planned = self.planned
        return None if planned == self.committed else planned

    def on_disk(self, log: Log) -> int:
        """The newest batch that a crash leaves in a log; -1 if there is none."""
        newest = newest_batch(self._storage, join(self._checkpoint, log))
        return -1 if newest is None else newest

    def write_down(self, session: SparkSession) -> None:
        """Writes what is only in memory to disk, once the query is stopped. Then the next start repeats no batch.

        After a failure, or without Spark, nothing is written, and the next start repeats some rows as after a crash.
        """
        if self._is_async:
            with contextlib.suppress(*SPARK_IS_GONE):
                spark_internals.write_newest_commit(self._streaming, session)

    def _newest(self, log: Log) -> int:
        if not self._is_async:
            return self.on_disk(log)
        try:
            newest = spark_internals.newest_batch(self._streaming, log)
        except SPARK_IS_GONE:
            return -1
        return -1 if newest is None else newest
