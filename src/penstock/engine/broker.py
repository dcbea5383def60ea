"""A real Kafka broker on this machine alone: one JVM, no container, for development and for tests."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from penstock.engine import connectors
from penstock.engine.java import require_java
from penstock.engine.session import LOOPBACK
from penstock.problems import Problem, UserError

CONNECTOR = "kafka-broker"
LARGEST_MESSAGE_BYTES = 10 * 1024 * 1024

_SERVER = "server.properties"
_LOG = "broker.log"
_DATA = "data"
_JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
_PORTS = range(20_000, 32_000)  # below those that Linux and macOS take for outgoing connections
_STOP_SECONDS = 20.0
_LOG_LINES = 8


@dataclass(frozen=True)
class Credentials:
    """What clients of the listener with passwords must give."""

    user: str
    password: str


@dataclass(frozen=True)
class Ports:
    """Where a broker listens, on loopback only; `sasl` is for clients that give a password."""

    clients: int
    controller: int
    sasl: int


class Broker:
    """A single-node broker and its data folder. It never outlives the process that started it.

    `stop` and `kill` leave the data; `start` goes on with it on the same port. Port None or 0 is a free one.
    """

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        auto_create_topics: bool = True,
        credentials: Credentials | None = None,
        properties: Mapping[str, str] = MappingProxyType({}),
        on_progress: connectors.Progress | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.folder = folder.absolute()
        free = free_ports(3)
        self._ports = Ports(port or free[0], free[1], free[2])
        self._credentials, self._on_progress, self._environ = credentials, on_progress, environ
        self._properties = {"auto.create.topics.enable": str(auto_create_topics).lower(), **properties}
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """The bootstrap servers of plain clients."""
        return f"{LOOPBACK}:{self._ports.clients}"

    @property
    def sasl_servers(self) -> str:
        """The bootstrap servers of clients with SASL_PLAINTEXT and PLAIN, when the broker was given credentials."""
        return f"{LOOPBACK}:{self._ports.sasl}"

    @property
    def pid(self) -> int | None:
        """The broker's process, from `start` until it is known to have ended."""
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            self._forget()
        return self._process is not None

    def start(self, within_seconds: float = 60) -> None:
        """Returns when clients can connect; leaves no process behind when that fails.

        UserError DEV001 when the port is taken, DEV002 when the folder is in use, DEV003 when the folder cannot be
        written, DEV004 when the broker does not come up; and what `require_java` and `connectors.ensure` raise.
        """
        if self.running:
            return
        _make_folder(self.folder)
        _require_unused(self.folder)
        _require_free(self._ports.clients)
        java = require_java(self._environ).path
        jars = connectors.ensure([CONNECTOR], connectors.WITHOUT_SPARK, java, self._on_progress)
        command = (java, *_JAVA_OPTIONS, "-cp", os.pathsep.join(map(str, jars)))
        self._write_properties()
        self._format((*command, "kafka.tools.StorageTool", "format", "--config", _SERVER), within_seconds)
        try:
            self._launch((*command, "kafka.Kafka", _SERVER))
            self._wait_until_up(within_seconds)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ends the broker in order. One that does not end in time is killed."""
        if self._process is None:
            return
        try:
            self._process.terminate()
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends the broker as a power cut does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def log_tail(self) -> str:
        """The last lines that the broker logged since its start: warnings and errors, without stack frames."""
        try:
            lines = (self.folder / _LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join([line for line in lines if line.strip() and not line.startswith("\t")][-_LOG_LINES:])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _write_properties(self) -> None:
        settings = {**server_properties(self._ports, self._credentials), **self._properties}
        file = self.folder / _SERVER
        file.touch(mode=0o600)  # it may hold a password
        file.write_text(properties_text(settings), encoding="latin-1")

    def _format(self, command: Sequence[str | Path], within_seconds: float) -> None:
        if (self.folder / _DATA / "meta.properties").exists():
            return
        try:
            ended = subprocess.run(
                [*command, "--cluster-id", _new_cluster_id()],
                cwd=self.folder,
                env=dict(self._environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=within_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _not_up(f"its folder was not formatted within {within_seconds:g} s", "") from error
        if ended.returncode:
            said = (ended.stdout + ended.stderr).decode(errors="replace").strip()
            raise _not_up("its folder could not be formatted", said[-1_000:])

    def _launch(self, command: Sequence[str | Path]) -> None:
        with (self.folder / _LOG).open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=dict(self._environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for us to handle
            )
        self._guard = end_with_us(self._process.pid)

    def _wait_until_up(self, within_seconds: float) -> None:
        deadline = time.monotonic() + within_seconds
        while not _accepts(self._ports.clients):
            if not self.running:
                raise _not_up("it ended while it was starting", self.log_tail())
            if time.monotonic() > deadline:
                raise _not_up(f"it took no connection within {within_seconds:g} s", self.log_tail())
            time.sleep(0.05)

    def _forget(self) -> None:
        """The process has ended, and its number may soon be another's: the guard must not use it."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        self._process = self._guard = None


_GUARD = """
import contextlib, sys
import psutil
guarded = psutil.Process(int(sys.argv[1]))
sys.stdin.read()  # nothing comes: the pipe closes when our end of it is gone
for process in (*guarded.children(recursive=True), guarded):
    with contextlib.suppress(psutil.NoSuchProcess):
        process.terminate()
        process.resume()
"""


def end_with_us(pid: int) -> subprocess.Popen[bytes]:
    """A process that ends `pid` and its children when this one is gone, even by kill -9, and even if they are held.

    Kill it before `pid` can be another's.
    """
    return subprocess.Popen(
        [sys.executable, "-c", _GUARD, str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def server_properties(ports: Ports, credentials: Credentials | None) -> dict[str, str]:
    """A single node, broker and controller in one, that listens on loopback only."""
    listeners = {"CLIENTS": ports.clients, "CONTROLLER": ports.controller}
    protocols = {"CLIENTS": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    sasl = {}
    if credentials is not None:
        listeners["SASL"], protocols["SASL"] = ports.sasl, "SASL_PLAINTEXT"
        sasl = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl.plain.sasl.jaas.config": _jaas(credentials)}
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENTS",
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        **sasl,
        "log.dirs": _DATA,
        "message.max.bytes": str(LARGEST_MESSAGE_BYTES),
        "group.initial.rebalance.delay.ms": "0",
        # After a crash the controller waits for so long before it lets the same broker in again.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # One node cannot hold three copies, and one client at a time needs no fifty partitions of bookkeeping.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file, in ASCII. Its escapes are those of JSON."""
    return "".join(f"{key}={json.dumps(value)[1:-1]}\n" for key, value in settings.items())


def _jaas(credentials: Credentials) -> str:
    user, password = credentials.user, json.dumps(credentials.password, ensure_ascii=False)
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}={password};"


def _new_cluster_id() -> str:
    # The first byte is zero because the tool would take an id that starts with a dash for an option.
    return base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")


def free_ports(count: int) -> tuple[int, ...]:
    """Ports of loopback that nobody listens on. The system gives them to no client, so a restart finds them free."""
    candidates = random.sample(_PORTS, len(_PORTS))
    return tuple(itertools.islice((port for port in candidates if _cannot_bind(port) is None), count))


def _cannot_bind(port: int) -> OSError | None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does: old connections do not count
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error
    return None


def _require_free(port: int) -> None:
    error = _cannot_bind(port)
    if error is not None:
        raise UserError(
            Problem(
                "DEV001",
                f"port {port} of {LOOPBACK} cannot be used: {error.strerror}",
                "end the program that listens there, or choose another port; 0 is any free one",
            )
        )


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


def _make_folder(folder: Path) -> None:
    try:
        (folder / _DATA).mkdir(parents=True, exist_ok=True)
        (folder / _LOG).touch()
    except OSError as error:
        raise UserError(
            Problem(
                "DEV003",
                f"the broker cannot keep its data in `{folder}`: {error.strerror}",
                "choose a folder that this user may write to",
            )
        ) from error


def _require_unused(folder: Path) -> None:
    with (folder / _DATA / ".lock").open("ab") as probe:
        try:
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of the kind that the broker takes on this file
        except OSError as error:
            raise UserError(
                Problem(
                    "DEV002",
                    f"another broker keeps its data in `{folder}`",
                    "end that one first, or choose another folder",
                )
            ) from error


def _not_up(reason: str, said: str) -> UserError:
    quoted = f"; it said:\n{said}" if said else ""
    fix = "mend what its log names; a folder of an older broker may need to be removed"
    return UserError(Problem("DEV004", f"the broker does not start: {reason}{quoted}", fix))
