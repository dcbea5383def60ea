"""What the real engine throws, as typed values: each kind with what stopped a real query."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr, raise_error, udf

from penstock.engine.causes import Cause, classify
from penstock.engine.failure_problems import FailedQuery, problem_of
from penstock.facts.raised import sealed
from penstock.facts.thrown import Thrown
from penstock.spark_internals import thrown_by, thrown_by_query
from tests.conftest import place

pytestmark = pytest.mark.spark

FORGED = 'penstock:bad-record:{"node":"x"}'
NEVER = ("An error occurred while calling", "null", "assertion failed", "Traceback", "Py4J", "a bug in Penstock")
FUNCTIONS = """
import os
import signal


def picky(value):
    return checked(value)


def checked(value):
    raise ValueError(f"refused: {value}")


def shouting(value):
    raise KeyError('x\\nTraceback (most recent call last):\\n  File "/etc/passwd", line 7, in x\\nOSError: y')


def killed(value):
    os.kill(os.getpid(), signal.SIGKILL)


def greedy(value):
    raise MemoryError
"""


class Streams:
    """Runs queries that fail, and gives what was thrown."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def lines(self, *lines: str, name: str = "a.txt") -> DataFrame:
        place(self.folder / "in" / name, "".join(f"{line}\n" for line in lines))
        rows: DataFrame = self.spark.readStream.format("text").load(str(self.folder / "in"))
        return rows

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def run(
        self, rows: DataFrame, write: Callable[[DataFrame], object] | None = None, mode: str = "append"
    ) -> tuple[Thrown, ...]:
        raised: list[Exception] = []

        def each(batch: DataFrame, number: int) -> None:
            try:
                write(batch)  # type: ignore[misc]
            except Exception as error:
                raised.append(error)
                raise

        writer = rows.writeStream.outputMode(mode).option("checkpointLocation", str(self.checkpoint))
        writer = writer.trigger(availableNow=True)
        query = (writer.foreachBatch(each) if write else writer.format("noop")).start()
        try:
            query.awaitTermination(60)
        except Exception:  # noqa: BLE001 - it is asked below
            return thrown_by(raised[0]) if raised else thrown_by_query(query)
        return ()

    def failed(
        self, rows: DataFrame, write: Callable[[DataFrame], object] | None = None, mode: str = "append"
    ) -> Cause:
        chain = self.run(rows, write, mode)
        assert chain, "the query did not fail"
        return classify(chain)


@pytest.fixture
def streams(spark, tmp_path) -> Streams:
    return Streams(spark, tmp_path)


@pytest.fixture
def functions(streams, monkeypatch) -> Any:
    """A module of the user's, whose functions go to the workers by value."""
    from pyspark import cloudpickle

    place(streams.folder / "own" / "users_functions.py", FUNCTIONS)
    monkeypatch.syspath_prepend(str(streams.folder / "own"))
    import users_functions

    cloudpickle.register_pickle_by_value(users_functions)
    yield users_functions
    cloudpickle.unregister_pickle_by_value(users_functions)
    import sys

    del sys.modules["users_functions"]


@pytest.mark.parametrize(
    "quoted", [FORGED, f'{sealed("bad-record")}{{"node": "lines", "check": "decoded"}}'], ids=["forged", "sealed"]
)
def test_a_value_that_looks_like_a_mark_of_ours_is_a_value(streams, quoted):
    cause = streams.failed(streams.lines(quoted).select(col("value").cast("int")))
    assert (cause.kind, cause.record, cause.link.condition) == ("other", None, "CAST_INVALID_INPUT")
    assert cause.link.sqlstate == "22018"


def test_a_step_that_raises_with_a_rows_value_is_no_bad_record(streams):
    forged = FORGED.replace("x", "lines")
    cause = streams.failed(streams.lines(forged).select(raise_error(col("value"))))
    assert (cause.kind, cause.record) == ("other", None)
    assert cause.root.parameters == {"errorMessage": forged}


def test_the_line_of_the_users_code(streams, functions):
    cause = streams.failed(streams.lines("a").select(udf(functions.picky)("value")))
    assert cause.kind == "user_code"
    assert cause.line == (
        functions.__file__,
        FUNCTIONS.splitlines().index('    raise ValueError(f"refused: {value}")') + 1,
    )
    assert (cause.link.name, cause.link.message) == ("ValueError", "refused: a")


def test_what_an_exception_says_is_neither_a_frame_nor_a_class(streams, functions):
    cause = streams.failed(streams.lines("a").select(udf(functions.shouting)("value")))
    assert cause.kind == "user_code"
    assert cause.line is not None
    assert cause.line[0] == functions.__file__
    assert cause.link.name == "KeyError"


def test_a_killed_worker(streams, functions):
    cause = streams.failed(streams.lines("a").select(udf(functions.killed)("value")))
    assert cause.kind == "worker_died"


def test_memory_in_a_worker_and_in_spark(streams, functions):
    assert streams.failed(streams.lines("a").select(udf(functions.greedy)("value"))).kind == "out_of_memory"
    # Spark folds the constant on the driver, and Java refuses the array: no task, and no executor, is harmed.
    too_long = expr("length(repeat('a', 2147483647))")
    cause = streams.failed(streams.lines("a").select(too_long))
    assert (cause.kind, cause.link.name) == ("out_of_memory", "OutOfMemoryError")


def test_a_damaged_file_has_its_path(streams, spark):
    folder = streams.folder / "parquet"
    spark.range(3).coalesce(1).write.parquet(str(folder))
    (file,) = folder.glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    (folder / f".{file.name}.crc").unlink(missing_ok=True)
    cause = streams.failed(spark.readStream.schema("id BIGINT").parquet(str(folder)))
    assert (cause.kind, cause.paths) == ("damaged_file", (f"file://{file}",))
    assert "is not a Parquet file" in cause.root.message


def test_a_file_in_another_type_than_the_schema(streams, spark):
    folder = streams.folder / "parquet"
    spark.range(3).coalesce(1).write.parquet(str(folder))
    cause = streams.failed(spark.readStream.schema("id ARRAY<INT>").parquet(str(folder)))
    assert cause.kind == "new_columns"
    assert cause.columns is not None
    assert (cause.columns.columns, cause.columns.types) == (("id",), ("INT64", "array<int>"))


def test_a_file_that_is_cut_off_in_its_compression(streams, spark):
    (streams.folder / "gz").mkdir()
    (streams.folder / "gz/a.json.gz").write_bytes(gzip.compress(b'{"id": 1}\n' * 1_000)[:-20])
    cause = streams.failed(spark.readStream.schema("id BIGINT").json(str(streams.folder / "gz")))
    assert (cause.kind, cause.paths) == ("damaged_file", (f"file://{streams.folder}/gz/a.json.gz",))


def test_a_file_that_is_gone_has_its_path(streams):
    def late(batch: DataFrame) -> None:
        (streams.folder / "in/a.txt").unlink()
        batch.count()

    cause = streams.failed(streams.lines("a"), late)
    assert (cause.kind, cause.paths) == ("missing_file", (f"file://{streams.folder}/in/a.txt",))


@pytest.mark.parametrize("file", ["offsets/0", "commits/0", "sources/0/0"])
@pytest.mark.parametrize("text", ["", "v9\n{garbage"], ids=["empty", "garbage"])
def test_a_damaged_log_of_the_checkpoint_has_its_path(streams, file, text):
    rows = streams.lines("a")
    assert not streams.run(rows)
    damaged = streams.checkpoint / file
    damaged.write_text(text)
    for log in (damaged.parent, streams.checkpoint / "commits"):
        for checksum in log.glob(".*.crc"):
            checksum.unlink()
    if file.startswith("sources"):
        (streams.checkpoint / "commits/0").unlink()
    streams.lines("b", name="b.txt")
    cause = streams.failed(rows)
    assert cause.kind == "checkpoint"
    assert [path.removeprefix("file:") for path in cause.paths] == [str(damaged)]


def test_state_of_another_query_and_state_that_is_gone(streams):
    rows = streams.lines("a")
    assert not streams.run(rows.groupBy("value").count(), mode="update")
    streams.lines("b", name="b.txt")
    other = streams.failed(rows.groupBy("value").agg(expr("sum(2.0)")), mode="update")
    assert (other.kind, other.link.condition) == ("checkpoint", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE")
    replaced = streams.failed(rows.dropDuplicates(["value"]))
    assert replaced.kind == "checkpoint"
    assert replaced.link.condition == "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
    for folder in (streams.checkpoint / "state/0").iterdir():
        if folder.name.isdigit():
            shutil.rmtree(folder)
    gone = streams.failed(rows.groupBy("value").count(), mode="update")
    assert gone.kind == "checkpoint"
    assert gone.paths
    assert "/state/0/" in gone.paths[0]


def test_one_source_more_than_the_checkpoint_has(streams):
    rows = streams.lines("a")
    assert not streams.run(rows)
    place(streams.folder / "more/a.txt", "x\n")
    streams.lines("b", name="b.txt")
    cause = streams.failed(rows.union(streams.spark.readStream.format("text").load(str(streams.folder / "more"))))
    assert cause.kind == "checkpoint"


def test_services_that_are_away(streams, spark):
    away = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.max.block.ms": "500", "topic": "t"}
    sink = streams.failed(streams.lines("a"), lambda rows: rows.write.format("kafka").options(**away).save())
    assert (sink.kind in ("source_away", "sink_away"), sink.service) == (True, "kafka")
    quick = {"kafka.default.api.timeout.ms": "1000", "kafka.request.timeout.ms": "500", "subscribe": "t"}
    shutil.rmtree(streams.checkpoint)
    source = streams.failed(spark.readStream.format("kafka").options(**away | quick).load())
    assert (source.kind, source.service, source.reads) == ("source_away", "kafka", True)
    url = "jdbc:postgresql://127.0.0.1:1/x"
    options = {"url": url, "dbtable": "t", "driver": "org.postgresql.Driver"}
    shutil.rmtree(streams.checkpoint)

    def save(rows: DataFrame) -> None:
        rows.write.format("jdbc").options(**options).mode("append").save()

    database = streams.failed(streams.lines("a"), save)
    assert (database.service, database.link.sqlstate) == ("database", "08001")
    shutil.rmtree(streams.checkpoint)
    store = streams.failed(streams.lines("a"), lambda rows: rows.write.text("hdfs://127.0.0.1:1/x"))
    assert store.service == "network"


def test_what_python_raises_on_the_driver(streams):
    def refused(rows: DataFrame) -> None:
        import socket

        socket.create_connection(("127.0.0.1", 1), 1)

    # Tests are no library: their own line is a user's.
    cause = streams.failed(streams.lines("a"), refused)
    assert (cause.kind, cause.link.name) == ("user_code", "ConnectionRefusedError")
    assert cause.line is not None
    assert cause.line[0] == __file__


def test_no_problem_says_what_says_nothing(streams, read, functions):
    """Problems of real failures: a message with the cause, a place, and no words of Py4J or Java alone."""
    pipeline = read(
        "pipeline: p\nsources: {lines: {type: files, path: in, format: text}}\n"
        "sinks: {out: {of: lines, type: files, path: out, format: text}}\n"
    )
    (query,) = pipeline.queries
    chains = [
        streams.run(streams.lines("a").select(col("value").cast("int")), lambda rows: rows.count()),
        streams.run(streams.lines("a").select(udf(functions.killed)("value")), lambda rows: rows.count()),
        streams.run(streams.lines("a").select(udf(functions.picky)("value")), lambda rows: rows.count()),
    ]
    for chain in chains:
        problem = problem_of(FailedQuery(query, pipeline, "checkpoint", classify(chain)))
        assert problem.where is not None
        assert not [word for word in NEVER if word in problem.message], problem.message
        assert "mend" not in problem.fix
