"""The progress of a query that writes it down beside its work: what Spark has in memory and not yet on disk."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

from penstock.spark_internals import SPARK_IS_GONE, newest_batch, write_newest_commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def last_planned(streaming: StreamingQuery) -> int:
    """The newest batch that has begun; -1 before the first, and where Spark is gone."""
    return _newest(streaming, "offsets")


def last_committed(streaming: StreamingQuery) -> int:
    """The newest batch that is done; -1 before the first, and where Spark is gone."""
    return _newest(streaming, "commits")


def write_down(streaming: StreamingQuery, session: SparkSession) -> None:
    """Writes the newest batch that is done down, once the query is stopped: then a stop repeats no more than any other.

    Where it failed or Spark is gone, nothing is written, and the next start repeats some rows as after a crash.
    """
    with contextlib.suppress(*SPARK_IS_GONE):
        write_newest_commit(streaming, session)


def _newest(streaming: StreamingQuery, log: Literal["offsets", "commits"]) -> int:
    try:
        newest = newest_batch(streaming, log)
    except SPARK_IS_GONE:
        return -1
    return -1 if newest is None else newest
