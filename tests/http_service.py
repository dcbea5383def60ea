"""A real HTTP server on loopback, whose answers a test chooses."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Service:
    """A server whose answers a test chooses: a status, with headers and a text, or a fault of the network."""

    server: ThreadingHTTPServer
    answer: Callable[[Seen], tuple[int, dict[str, str], str]] = lambda seen: (200, {}, "")
    seen: list[Seen] = field(default_factory=list)
    now: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def ids(self) -> list[int]:
        return sorted(seen.json["id"] for seen in self.seen)


class Reset(Exception):
    """The server closes the connection in the middle."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: Service

    def handle_one(self) -> None:
        service = self.service
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, self.path, headers, self.rfile.read(length))
        with service.lock:
            service.seen.append(seen)
            service.now += 1
            service.most_at_once = max(service.most_at_once, service.now)
        try:
            status, more, text = service.answer(seen)
        except Reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        finally:
            with service.lock:
                service.now -= 1
        content = text.encode()
        with suppress(OSError):  # the client may have lost its patience
            self.send_response(status)
            for name, value in (more | {"Content-Length": str(len(content))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815 - the server looks for these

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()


@contextmanager
def serving() -> Iterator[Service]:
    """A service on a free port of loopback."""

    class Own(Handler):
        pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *args: Any) -> None:
            """A test breaks connections on purpose."""

    with Quiet(("127.0.0.1", 0), Own) as server:
        Own.service = Service(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield Own.service
        server.shutdown()


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
