"""The connections over which the JVM calls Python.

Py4J opens one for each thread of the JVM that calls, with a thread of Python's at its other end, and keeps both until
the process ends. Each start of a query is a new thread of the JVM. So whatever is called there takes a note of its
caller, and the connections of threads that have ended are closed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.spark_internals.java_errors import JvmError

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener


@dataclass(frozen=True)
class _Caller:
    thread: Any
    """The `Thread` of the JVM."""
    connection: Any
    client: Any
    """What keeps the connection in the JVM."""


_callers: dict[int, _Caller] = {}
"""By the thread of Python's that serves it."""


def note_caller() -> None:
    """The JVM calls Python in this very thread: its connection is closed when the JVM's thread has ended."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    mine = threading.get_ident()
    if mine in _callers or gateway is None:
        return
    client = gateway.java_gateway_server.getCallbackClient()
    _callers[mine] = _Caller(gateway.jvm.java.lang.Thread.currentThread(), client.getPerThreadConnection(), client)


def close_ended_callbacks() -> None:
    """Closes the connections of threads of the JVM that have ended."""
    for mine, caller in tuple(_callers.items()):
        try:
            if caller.thread.isAlive():
                continue
            caller.client.connectionStopped(caller.connection)
            caller.connection.shutdown()
        except (ConnectionError, JvmError):
            pass  # the JVM has ended, and its connections with it
        _callers.pop(mine, None)


def relayed(listener: StreamingQueryListener) -> StreamingQueryListener:
    """The same listener. Spark calls it in the thread of each query that starts."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Relayed(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's names
            note_caller()
            listener.onQueryStarted(event)

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            listener.onQueryProgress(event)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            listener.onQueryIdle(event)

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            listener.onQueryTerminated(event)

    return Relayed()
