"""The progress of a query that writes it down beside its work: what Spark has in memory and not yet on disk."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def last_planned(streaming: StreamingQuery) -> int:
    """The newest batch that has begun; -1 before the first, and where Spark is gone."""
    return _newest(streaming, "offsetLog")


def last_committed(streaming: StreamingQuery) -> int:
    """The newest batch that is done; -1 before the first, and where Spark is gone."""
    return _newest(streaming, "commitLog")


def write_down(streaming: StreamingQuery, session: SparkSession) -> None:
    """Writes the newest batch that is done down, once the query is stopped: then a stop repeats no more than any other.

    Where it failed or Spark is gone, nothing is written, and the next start repeats some rows as after a crash.
    """
    with contextlib.suppress(Py4JError, ConnectionError):
        if _execution(streaming).exception().isDefined():
            return  # why it failed may be the log itself
        offsets, commits = _execution(streaming).offsetLog(), _execution(streaming).commitLog()
        newest = commits.getLatest()
        planned = offsets.get(newest.get()._1()) if newest.isDefined() else newest
        if not planned.isDefined():
            return
        jvm: Any = session._jvm
        logs = jvm.org.apache.spark.sql.execution.streaming.checkpointing
        # The offsets first, as Spark does. A file that is there stays as it is.
        for log, kept, entry in (
            (logs.OffsetSeqLog, offsets, planned.get()),
            (logs.CommitLog, commits, newest.get()._2()),
        ):
            log(session._jsparkSession, kept.metadataPath().toString()).add(newest.get()._1(), entry)


def _newest(streaming: StreamingQuery, log: str) -> int:
    try:
        newest = getattr(_execution(streaming), log)().getLatest()
        return int(newest.get()._1()) if newest.isDefined() else -1
    except (Py4JError, ConnectionError):
        return -1


def _execution(streaming: Any) -> Any:
    return streaming._jsq.streamingQuery()
