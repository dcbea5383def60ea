"""A service that takes alerts on `POST /alerts`, and refuses those of sensors that it does not know."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "let-me-in"
SENSORS = ("boiler", "cellar", "engine")


class Alerts(BaseHTTPRequestHandler):
    """Answers 201 for an alert that is new, 200 for one that it has, 422 for one that it refuses."""

    protocol_version = "HTTP/1.1"
    taken: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - one for the whole service

    def do_POST(self) -> None:
        alert = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Idempotency-Key"]
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, {"error": "who are you?"})
        elif alert["sensor"] not in SENSORS:
            self._answer(422, {"error": f"there is no sensor {alert['sensor']}"})
        elif key in self.taken:
            self._answer(200, {"alert": "known"})
        else:
            self.taken[key] = alert
            self._answer(201, {"alert": "taken"})

    def _answer(self, status: int, content: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(port: int) -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", port), Alerts)


if __name__ == "__main__":
    with serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8080) as server:
        print(f"Takes alerts on http://127.0.0.1:{server.server_port}. Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(*Alerts.taken.values(), sep="\n")
