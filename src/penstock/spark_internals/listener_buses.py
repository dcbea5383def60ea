"""What Spark registers for each session that has had a query, and never removes: a bus for the listeners of queries.

Each of them gets every event of every query in the process. A query that keeps state has one more with each start, for
Spark runs it in a copy of its session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.spark_internals.java_errors import JvmError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_DELIVERY_MS = 5_000


def release_copy(query: StreamingQuery) -> None:
    """Removes the bus of the copy in which a query ran that has ended. No listener is registered there."""
    inside: Any = query
    _remove(inside._jsq.streamingQuery().sparkSessionForStream())


def release_session(session: SparkSession) -> None:
    """Removes the bus of a session that starts no query any more, once its listeners have heard of everything."""
    inside: Any = session
    try:
        inside._jsparkSession.sparkContext().listenerBus().waitUntilEmpty(_DELIVERY_MS)
    except JvmError:
        return  # it has not come so far: what is left is still delivered
    _remove(inside._jsparkSession)


def _remove(java_session: Any) -> None:
    manager = java_session.streams()
    field = manager.getClass().getDeclaredField("listenerBus")
    field.setAccessible(True)
    java_session.sparkContext().listenerBus().removeListener(field.get(manager))
