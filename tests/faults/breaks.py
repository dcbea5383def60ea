"""What a fault is: what breaks and how, what is decided, and what may be lost or repeated."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.supervise import events
from tests.cli.test_faults import ids_in
from tests.conftest import place
from tests.faults.lab import Lab, Way, lines
from tests.http_service import Seen as Request
from tests.http_service import serving
from tests.services import consume, produce

BEFORE, DURING = range(10), range(10, 20)
"""The ids that are written before the fault, and during it."""

Decision = Literal["goes on", "waits or restarts", "stops"]


@dataclass(frozen=True)
class Break:
    """How a fault begins and ends."""

    begin: Callable[[], None]
    end: Callable[[], None] = lambda: None
    hold_seconds: float = 0.0
    """How long it lasts. 0: until it was noticed."""
    stays: bool = False
    """Does it last until the run has ended by itself?"""


@dataclass(frozen=True)
class Case:
    """One fault."""

    name: str
    what: str
    """In the words of the page."""
    decision: Decision
    lay_out: Callable[[Lab], Break]
    """Writes the project, says how the lab feeds and reads it, and how it breaks."""
    code: str = ""
    """The Problem of a run that stops, where there is one."""
    repeats: bool = False
    """May rows come twice? Where the sink promises at-least-once."""
    ways: tuple[Way, ...] = ("run", "start")
    short: bool = False
    """Is it part of `make test`?"""


# What the projects are made of

FILES = "type: files, path: in, max_files_per_trigger: 1, format: {type: json, schema: 'id BIGINT'}"
DELTA = "type: delta, path: out"


def project(source: str, sink: str, step: str = "", more: str = "", name: str = "p") -> str:
    of = "x" if step else "a"
    steps = f"steps:\n  x: {{{step}}}\n" if step else ""
    head = f"pipeline: {name}\nlatency: low\n{more}"
    return f"{head}sources:\n  a: {{{source}}}\n{steps}sinks:\n  out: {{of: {of}, {sink}}}\n"


def from_files(lab: Lab) -> None:
    def feed(ids: range) -> None:
        """In two files: there is a batch before and after the one that fails."""
        (lab.root / "in").mkdir(parents=True, exist_ok=True)
        for half in (ids[:5], ids[5:]):
            place(lab.root / f".in/{half.start}.json", lines(half))
            (lab.root / f".in/{half.start}.json").rename(lab.root / f"in/{half.start}.json")

    lab.feed = feed


def into_delta(lab: Lab) -> None:
    lab.ids = lambda: ids_in(lab.root / "out")


def from_kafka(lab: Lab, servers: str, topic: str) -> str:
    lab.feed = lambda ids: produce(servers, topic, (json.dumps({"id": number}) for number in ids))
    return (
        f"type: kafka, servers: '{servers}', topics: [{topic}], starting: earliest, max_offsets_per_trigger: 4,"
        " format: {type: json, schema: 'id BIGINT'}"
    )


def into_postgres(lab: Lab) -> str:
    lab.services("pg").execute("CREATE TABLE t (id BIGINT)")

    def ids() -> list[int]:
        import psycopg

        try:
            with psycopg.connect(lab.services("postgres").url, connect_timeout=2) as connection:
                return [row[0] for row in connection.execute("SELECT id FROM t").fetchall()]
        except psycopg.Error:
            return []  # it is away

    lab.ids = ids
    return f"type: postgres, url: '{lab.services('postgres').url}', table: t"


def noticed_away(lab: Lab, node: str) -> None:
    """The run reports within seconds that something is away."""
    took = lab.wait_until(lambda: lab.has(events.Away, node=node), f"nobody said that `{node}` is away")
    assert took < 60


# Services


def _own_broker(lab: Lab) -> Any:
    from penstock.engine.broker import Broker

    return lab.cleanup.enter_context(Broker(lab.root.parent / "broker", auto_create_topics=True))


def broker_away(seconds: float) -> Callable[[Lab], Break]:
    def lay_out(lab: Lab) -> Break:
        broker = _own_broker(lab)
        lab.write(project(from_kafka(lab, broker.servers, "orders"), DELTA))
        into_delta(lab)

        def away() -> None:
            if lab.way != "once":
                lab.feed(DURING)
            broker.kill()
            noticed_away(lab, "a")

        return Break(away, broker.start, seconds)

    return lay_out


def broker_of_the_sink_away(lab: Lab) -> Break:
    broker = _own_broker(lab)
    from_files(lab)
    lab.write(project(FILES, f"type: kafka, servers: '{broker.servers}', topic: out"))

    def ids() -> list[int]:
        if broker_is_away:
            return []
        return [json.loads(message.value())["id"] for message in consume(broker.servers, "out")]

    broker_is_away: list[bool] = []
    lab.ids = ids

    def begin() -> None:
        broker_is_away.append(True)
        broker.kill()
        lab.feed(DURING)
        noticed_away(lab, "out")

    def end() -> None:
        broker.start()
        broker_is_away.clear()

    return Break(begin, end, 10)


def postgres_away(seconds: float) -> Callable[[Lab], Break]:
    def lay_out(lab: Lab) -> Break:
        from_files(lab)
        lab.write(project(FILES, into_postgres(lab)))
        server = lab.services("postgres")
        lab.cleanup.callback(server.start)  # it is the only one of the test run

        def begin() -> None:
            server.stop()
            if lab.way != "once":
                lab.feed(DURING)
            if seconds:
                noticed_away(lab, "out")

        return Break(begin, server.start, seconds)

    return lay_out


def table_dropped(lab: Lab) -> Break:
    from_files(lab)
    lab.write(project(FILES, into_postgres(lab)))
    connection = lab.services("pg")

    def begin() -> None:
        connection.execute("ALTER TABLE t RENAME TO elsewhere")
        lab.feed(DURING)

    return Break(begin, lambda: connection.execute("ALTER TABLE elsewhere RENAME TO t"), stays=True)


def http_answers(status: int | None) -> Callable[[Lab], Break]:
    """With a status, or not at all."""

    def lay_out(lab: Lab) -> Break:
        service = lab.cleanup.enter_context(serving())
        from_files(lab)
        sink = f"type: http, url: '{service.url}', idempotency_key: [id], max_attempts: 2, retry_for: 2 seconds"
        lab.write(project(FILES, f"{sink}, timeout: 2 seconds"))
        taken: list[int] = []
        broken: list[bool] = []

        def answer(request: Request) -> tuple[int, dict[str, str], str]:
            if broken and status is not None:
                return status, {}, ""
            if broken:
                from tests.http_service import Reset

                raise Reset
            taken.append(request.json["id"])
            return 200, {}, ""

        service.answer = answer
        lab.ids = lambda: list(taken)

        def begin() -> None:
            broken.append(True)
            lab.feed(DURING)
            lab.wait_until(lambda: lab.has(events.Restarting), "it was not restarted")

        return Break(begin, broken.clear, 3)

    return lay_out


# User code and workers

_CODE = """
import os
import signal
from pathlib import Path

from pyspark.sql.functions import udf

FLAGS = Path({flags!r})


def checked(a):
    @udf("bigint")
    def look(number):
        for flag in FLAGS.glob("kill*"):
            if number >= 10:
                if not flag.name.endswith("always"):
                    flag.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        for flag in FLAGS.glob("memory*"):
            if number >= 10:
                flag.unlink()
                raise MemoryError
        if list(FLAGS.glob("raise")) and number == 13:
            raise ValueError("thirteen")
        return number

    return a.select(look("id").alias("id"))
"""


def each_attempt(kind: str, times: int) -> list[str]:
    """The flags for a query that fails this often: the Spark of the tests tries a task four times by itself."""
    return [f"{kind}{number}" for number in range(4 * times)]


def flagged(*flags: str, stays: bool = False) -> Callable[[Lab], Break]:
    """A worker that breaks for as long as there are flags."""

    def lay_out(lab: Lab) -> Break:
        from_files(lab)
        into_delta(lab)
        folder = lab.root.parent / "flags"
        folder.mkdir()
        module = f"code_{lab.root.parent.name.replace('-', '_')}"
        place(lab.root / f"{module}.py", _CODE.format(flags=str(folder)))
        lab.write(project(FILES, DELTA, f"python: '{module}:checked'"))

        def begin() -> None:
            for flag in flags:
                (folder / flag).touch()
            lab.feed(DURING)
            if not stays:
                lab.wait_until(lambda: not list(folder.iterdir()), "the flags were not taken")

        def end() -> None:
            for flag in folder.iterdir():
                flag.unlink()

        return Break(begin, end, stays=stays)

    return lay_out


# Disks, files and schemas


@contextmanager
def _disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        # Spark may still have a file of the last batch open: the disk goes when it closes it.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def disk_full(lab: Lab) -> Break:
    disk = lab.cleanup.enter_context(_disk(lab.root.parent / "disk", "3m"))
    from_files(lab)
    into_delta(lab)
    lab.write(project(FILES, DELTA), f"name: lab\nstorage: {disk}/storage\n")
    filler = disk / "filler"

    def begin() -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4_096)
            except OSError:
                pass
        lab.feed(DURING)
        lab.wait_until(lambda: lab.has(events.Restarting), "it was not restarted")

    return Break(begin, filler.unlink, 2)


def storage_read_only(lab: Lab) -> Break:
    disk = lab.cleanup.enter_context(_disk(lab.root.parent / "disk", "30m"))
    from_files(lab)
    into_delta(lab)
    lab.write(project(FILES, DELTA), f"name: lab\nstorage: {disk}/storage\n")

    def mounted(how: str) -> None:
        deadline = time.monotonic() + 60
        while subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=False).returncode:
            assert time.monotonic() < deadline, "the disk is busy"
            time.sleep(0.2)

    def begin() -> None:
        mounted("ro")
        lab.feed(DURING)

    return Break(begin, lambda: mounted("rw"), stays=True)


def cannot_widen(lab: Lab) -> Break:
    from_files(lab)
    into_delta(lab)
    lab.write(project("type: files, path: in, format: json, on_new_columns: add", DELTA))

    def begin() -> None:
        place(lab.root / ".in/more.json", "".join(json.dumps({"id": n, "amount": 1}) + "\n" for n in DURING))
        (lab.root / ".in/more.json").rename(lab.root / "in/more.json")

    def end() -> None:
        text = (lab.root / "pipelines/p.yaml").read_text()
        place(lab.root / "pipelines/p.yaml", text.replace("path: out", "path: out, merge_schema: true"))

    return Break(begin, end, stays=True)


# Listeners and other pipelines


def listener_raises(lab: Lab) -> Break:
    from_files(lab)
    into_delta(lab)
    module = f"listens_{lab.root.parent.name.replace('-', '_')}"
    calls = ("onQueryStarted", "onQueryProgress", "onQueryIdle", "onQueryTerminated")
    body = "".join(f"    def {call}(self, event):\n        raise ValueError('on purpose')\n" for call in calls)
    place(
        lab.root / f"{module}.py",
        f"from pyspark.sql.streaming import StreamingQueryListener\nclass Raising(StreamingQueryListener):\n{body}",
    )
    lab.write(project(FILES, DELTA, more=f"listeners: ['{module}:Raising']\n"))
    return Break(lambda: lab.feed(DURING))


def other_pipeline_fails(lab: Lab) -> Break:
    from_files(lab)
    into_delta(lab)
    lab.write(project(FILES, DELTA))
    bad = project("type: files, path: bad, format: text", "type: files, path: cast, format: json",
                  "sql: 'SELECT CAST(value AS INT) AS n FROM a'", name="q")  # fmt: skip
    lab.write(bad, name="q")
    place(lab.root / "bad/1.txt", "7\n")

    def begin() -> None:
        place(lab.root / "bad/2.txt", "not a number\n")
        lab.wait_until(lambda: lab.has(events.Stopped, pipeline="q"), "the other pipeline did not fail")
        lab.feed(DURING)

    return Break(begin, lambda: place(lab.root / "bad/2.txt", "8\n"))
