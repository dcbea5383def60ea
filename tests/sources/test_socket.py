"""Lines from a real TCP server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from penstock.sources import Socket
from tests.sources.conftest import wait_for

pytestmark = pytest.mark.spark

LINES = ["first", "zwölf", "last"]


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server that says its lines to whoever connects, and then keeps the line open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall("".join(f"{line}\n" for line in LINES).encode())
                done.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        done.set()
        thread.join()


@pytest.mark.covers("source.socket")
@pytest.mark.parametrize("include_timestamp", [False, True])
def test_lines_arrive_as_rows(flowing, port, include_timestamp):
    source = Socket(host="127.0.0.1", port=port, include_timestamp=include_timestamp, num_partitions=2)
    with flowing(source) as so_far:
        rows = wait_for(lambda: len(so_far()) == len(LINES) and so_far())
    assert sorted(row.value for row in rows) == sorted(LINES)
    assert rows[0].asDict().keys() == ({"value", "timestamp"} if include_timestamp else {"value"})
