"""A PostgreSQL server for tests: on a private port of loopback, in a folder of its own, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from penstock.engine.broker import end_with_us, free_ports

USER = DATABASE = "penstock"
PASSWORD = "secret"
_FOLDERS = (
    "/usr/lib/postgresql/*/bin",  # Debian
    "/usr/pgsql-*/bin",  # PostgreSQL's own RPMs
    "/usr/libexec/postgresql*",  # Alpine
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`: on the PATH, or where systems hide them."""
    found = shutil.which("initdb")
    hidden = sorted(path for folder in _FOLDERS for path in Path("/").glob(folder.lstrip("/")))
    for folder in [*([Path(found).resolve().parent] if found else []), *reversed(hidden)]:
        if os.access(folder / "initdb", os.X_OK) and os.access(folder / "postgres", os.X_OK):
            return folder
    return None


class Postgres:
    """A server with the database `penstock`; its user `penstock` must give a password.

    `stop` leaves the data, and `start` goes on with it on the same port. `remove` is the end.
    """

    def __init__(self) -> None:
        programs = find_programs()
        if programs is None:
            raise RuntimeError("PostgreSQL's `initdb` and `postgres` are missing: run `sh scripts/setup.sh tests`")
        self._programs = programs
        self._account = _unprivileged()
        # Below /tmp itself: pytest's own folders are closed to other users, and a socket's path must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Returns when clients can connect."""
        if self._process is not None:
            return
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            command = [self._programs / "postgres", "-D", self.folder / "data", *options]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as())
        self._guard = end_with_us(self._process.pid)
        self._wait_until_up()

    def stop(self) -> None:
        """Ends the server at once: clients are cut off, and what they committed is kept."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)
            self._forget()

    def remove(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
            self._forget()
        shutil.rmtree(self.folder)

    def _make(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        if self._account is not None:
            for path in (self.folder, password):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        command = [self._programs / "initdb", "--pgdata", self.folder / "data", "--username", USER, "--no-sync"]
        command += ["--auth", "scram-sha-256", "--pwfile", password, "--encoding", "UTF8", "--locale", "C"]
        made = subprocess.run(command, capture_output=True, text=True, check=False, **self._as())
        if made.returncode:
            raise RuntimeError(f"initdb fails: {made.stderr}")
        self.start()
        with psycopg.connect(self.url_of("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def _as(self) -> dict[str, object]:
        """How to start a program: never as root, which PostgreSQL refuses, and in a folder that it may enter."""
        account = self._account
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        return {"cwd": self.folder, "start_new_session": True, **who}

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + 300
        while True:
            try:
                psycopg.connect(self.url_of("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError as error:
                ended = self._process is None or self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()}") from error
                time.sleep(0.05)
            else:
                return

    def _forget(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        self._process = self._guard = None


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom to run as when we are root: `postgres`, which its packages make, else `nobody`."""
    if os.geteuid() != 0:
        return None
    accounts = {account.pw_name: account for account in pwd.getpwall()}
    return accounts.get("postgres") or accounts["nobody"]
