"""The contract of every sink: a batch that is run again, as after a driver's crash, keeps the sink's promise.

Exactly-once sinks hold each id once. At-least-once sinks repeat at most that batch, and the record id removes repeats.
Tasks are tried again here (`local[2,4]`), so a sink must stand that a partition is written twice, too.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock import catalog
from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place
from tests.services import consume

pytestmark = [pytest.mark.spark, pytest.mark.services]

BATCHES = 4
ROWS = 6
FLAKY = '''
import pathlib
from pyspark import TaskContext
from pyspark.sql.functions import col, udf

ROOT = pathlib.Path(__file__).parent


@udf("bigint")
def once_more(id):
    """Fails the first attempt of the task that has id 13, after it has taken its first rows."""
    if id == 13 and TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the machine went away")
    return id


def shaken(numbers):
    return numbers.withColumn("id", once_more(col("id")))


def write(rows, batch):
    def once():
        for row in rows.collect():
            with (ROOT / "written.txt").open("a") as file:
                file.write(f"{row.id}\\n")
    batch.once("lines", once)
'''


@dataclass
class Place:
    """What a sink needs to be tried: its keys, and how its readers see the ids that it holds."""

    keys: dict[str, Any]
    ids: Callable[[], list[int]]
    record_ids: Callable[[], list[str]] | None = None
    settings: str = "name: test\n"
    files: dict[str, str] = field(default_factory=dict)


@contextmanager
def http_server() -> Iterator[tuple[str, list[tuple[str, int]]]]:
    got: list[tuple[str, int]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.headers["Idempotency-Key"], body["id"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/orders", got
    server.shutdown()


@pytest.fixture
def places(tmp_path, spark, request) -> Callable[[str], Place]:
    """By a sink's type, where it writes in these tests. Services are started when they are needed."""
    root = tmp_path / "project"

    def ids(rows: Any) -> list[int]:
        return [row.id for row in rows.collect()]

    def made(sink: str) -> Place:
        match sink:
            case "console" | "memory":
                return Place({}, list)
            case "files":
                path = str(root / "out")
                return Place({"path": "out", "format": "parquet"}, lambda: ids(spark.read.parquet(path)))
            case "spark":
                path = str(root / "out")
                keys = {"format": "parquet", "path": "out"}
                return Place(keys, lambda: ids(spark.read.parquet(path)))
            case "delta":
                path = str(root / "out")
                return Place({"path": "out"}, lambda: ids(spark.read.format("delta").load(path)))
            case "iceberg" | "table":
                warehouse = tmp_path / "warehouse"
                name = f"lake_{sink}_{tmp_path.name[-8:].replace('-', '_')}"
                spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
                for key, value in {"type": "hadoop", "warehouse": str(warehouse), "cache-enabled": "false"}.items():
                    spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
                settings = f"name: test\ncatalogs: {{{name}: {{type: iceberg, warehouse: {warehouse}}}}}\n"
                settings += "spark: {}\n"
                more = {"format": "iceberg"} if sink == "table" else {}
                table = f"{name}.shop.numbers"
                return Place({"table": table, **more}, lambda: ids(spark.table(table)), settings=settings)
            case "postgres":
                pg = request.getfixturevalue("pg")
                url = request.getfixturevalue("postgres").url
                keys = {"url": url, "table": "numbers", "create_table": True}
                return Place(keys, lambda: [row[0] for row in pg.execute("SELECT id FROM numbers").fetchall()])
            case "jdbc":
                pg, server = request.getfixturevalue("pg"), request.getfixturevalue("postgres")
                pg.execute("CREATE TABLE numbers (id BIGINT, name TEXT)")
                keys = {
                    "url": f"jdbc:postgresql://127.0.0.1:{server.port}/penstock",
                    "table": "numbers",
                    "driver": "org.postgresql.Driver",
                    "username": "penstock",
                    "password": "secret",
                }
                return Place(keys, lambda: [row[0] for row in pg.execute("SELECT id FROM numbers").fetchall()])
            case "kafka":
                servers, topic = (
                    request.getfixturevalue("kafka").servers,
                    request.getfixturevalue("topic")(partitions=2),
                )
                return Place(
                    {"servers": servers, "topic": topic},
                    lambda: [json.loads(message.value())["id"] for message in consume(servers, topic)],
                    lambda: [dict(m.headers())["penstock-id"].decode() for m in consume(servers, topic)],
                )
            case "http":
                url, got = request.getfixturevalue("server")
                return Place({"url": url}, lambda: [id_ for _, id_ in got], lambda: [key for key, _ in got])
            case "python":
                written = root / "written.txt"
                keys = {"each_batch": "flaky:write"}
                return Place(
                    keys, lambda: [int(line) for line in written.read_text().split()] if written.exists() else []
                )
        raise AssertionError(f"the sink `{sink}` has no place in this suite: add one")

    return made


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, int]]]]:
    with http_server() as running:
        yield running


def pipeline(sink: str, keys: dict[str, Any]) -> str:
    schema = "id BIGINT, name STRING"
    return yaml.safe_dump(
        {
            "pipeline": "replayed",
            "sources": {
                "numbers": {
                    "type": "files",
                    "path": "in",
                    "max_files_per_trigger": 1,
                    "format": {"type": "csv", "schema": schema},
                }
            },
            "steps": {"shaken": {"python": "flaky:shaken"}},
            "sinks": {"out": {"of": "shaken", "type": sink, **keys}},
        }
    )


def write_input(root: Path, batch: int) -> None:
    ids = range(batch * ROWS, (batch + 1) * ROWS)
    file = root / f"in/{batch}.csv"
    place(file, "".join(f"{number},name {number}\n" for number in ids))
    os.utime(file, (1_700_000_000 + batch,) * 2)  # files are read in the order of their time


@pytest.mark.covers("model.exactly-once", "sink.guarantees")
@pytest.mark.parametrize("sink", catalog.sinks())
def test_a_batch_that_is_run_again_keeps_the_promise(sink, places, project_at, run_once):
    there = places(sink)
    root = project_at(pipeline(sink, there.keys), files={"flaky.py": FLAKY, **there.files}, settings=there.settings)
    for batch in range(BATCHES):
        write_input(root, batch)
    result = run_once(root)
    assert result.ok, result.problems
    promise = result.queries[0].promise
    everything = list(range(BATCHES * ROWS))
    if promise == "none":
        return
    assert sorted(set(there.ids())) == everything
    for replay in range(2):
        forget_last_commit(checkpoint_of(root, "replayed", "shaken"))
        if replay:
            write_input(root, BATCHES)  # the batch after a replayed one must not be passed over
        result = run_once(root)
        assert result.ok, result.problems
    everything += range(BATCHES * ROWS, (BATCHES + 1) * ROWS)
    found = Counter(there.ids())
    assert sorted(found) == everything
    repeated = {number for number, count in found.items() if count > 1}
    if promise == "exactly-once":
        assert not repeated
        return
    # The last batch, run again twice, and the partition of the task that was tried again.
    may_repeat = set(range((BATCHES - 1) * ROWS, BATCHES * ROWS)) | set(range(12, 18))
    assert repeated <= may_repeat
    if there.record_ids is not None:
        assert len(set(there.record_ids())) == len(everything)


def test_every_sink_has_its_place(places):
    assert set(catalog.sinks()) >= {"delta", "iceberg", "postgres", "kafka", "http", "jdbc", "python"}
