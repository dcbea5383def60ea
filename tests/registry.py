"""A small schema registry over HTTP, with the paths that serializers use, for tests."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class SchemaRegistry:
    """Keeps schemas under subjects; `url` is where it is. With `login`, it answers nobody else."""

    def __init__(self, login: tuple[str, str] | None = None) -> None:
        self.subjects: dict[str, list[int]] = {}
        self.schemas: list[str] = []
        self.asked: list[str] = []
        self._login = login
        self.url = ""

    def add(self, subject: str, schema: str) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, method: str, path: str, body: Any, login: str) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if self._login and login != "Basic " + base64.b64encode(":".join(self._login).encode()).decode():
            return 401, {"error_code": 401, "message": "Unauthorized"}
        match [method, *map(unquote, path.strip("/").split("/"))]:
            case ["GET", "subjects"]:
                return 200, sorted(self.subjects)
            case ["POST", "subjects", subject, "versions"]:
                return 200, {"id": self.add(subject, body["schema"])}
            case ["POST", "subjects", subject] if body["schema"] in self.schemas:
                return 200, self._version(subject, self.subjects[subject].index(self.add(subject, body["schema"])))
            case ["GET", "subjects", subject, "versions"] if subject in self.subjects:
                return 200, list(range(1, len(self.subjects[subject]) + 1))
            case ["GET", "subjects", subject, "versions", version] if subject in self.subjects:
                return 200, self._version(subject, -1 if version == "latest" else int(version) - 1)
            case ["GET", "schemas", "ids", number] if 0 < int(number) <= len(self.schemas):
                return 200, {"schema": self.schemas[int(number) - 1]}
        return 404, {"error_code": 40401, "message": "not found"}

    def _version(self, subject: str, index: int) -> dict[str, Any]:
        number = self.subjects[subject][index]
        version = self.subjects[subject].index(number) + 1
        return {"subject": subject, "version": version, "id": number, "schema": self.schemas[number - 1]}


@contextmanager
def serving(login: tuple[str, str] | None = None) -> Iterator[SchemaRegistry]:
    registry = SchemaRegistry(login)

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path, login = urlsplit(self.path).path, self.headers.get("Authorization", "")
            status, said = registry.answer(self.command, path, body, login)
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _reply  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
