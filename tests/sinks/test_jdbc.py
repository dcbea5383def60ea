"""A table of any database that has a JDBC driver: PostgreSQL through its driver, and the Derby that Spark ships."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from penstock.problems import Fault
from penstock.sinks import Jdbc, jdbc
from penstock.sinks.batch import Batch
from penstock.sinks.jdbc_ledger import Database

pytestmark = [pytest.mark.spark, pytest.mark.services]


class Server:
    """A database with a table `t (id BIGINT, name VARCHAR(10))`."""

    def __init__(self, sink: Callable[..., Jdbc], run: Callable[[str], Any], spark: Any) -> None:
        self.sink, self.run, self._spark = sink, run, spark

    def table(self, name: str) -> list[tuple[Any, ...]]:
        options = {**self.sink()._database(self._spark)._options, "dbtable": name}
        return sorted(map(tuple, self._spark.read.format("jdbc").options(**options).load().collect()))


@pytest.fixture(params=["postgresql", "derby"])
def server(request, spark) -> Server:
    if request.param == "postgresql":
        pg, postgres = request.getfixturevalue("pg"), request.getfixturevalue("postgres")
        url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/penstock"
        keys = {"url": url, "username": "penstock", "password": "secret"}
    else:
        keys = {"url": f"jdbc:derby:memory:{uuid4().hex};create=true"}

    def sink(**more: Any) -> Jdbc:
        return Jdbc(**{**keys, "table": "t"} | more)

    def run(sql: str) -> None:
        if request.param == "postgresql":
            pg.execute(sql)
            return
        with sink()._database(spark)._connected() as connection:
            connection.prepareStatement(sql).executeUpdate()

    run("CREATE TABLE t (id BIGINT, name VARCHAR(10))")
    return Server(sink, run, spark)


@pytest.fixture
def numbered() -> Callable[..., Batch]:
    query_id = uuid4().hex
    return lambda number, sink="out", query=query_id: Batch("p", query, sink, number, put_aside=lambda rows: None)


@pytest.fixture
def rows(spark):
    return lambda start, end, parts=2: spark.range(start, end, 1, parts).selectExpr("id", "concat('n', id) AS name")


def fault_of(action: Callable[[], object]) -> Fault:
    with pytest.raises(Fault) as raised:
        action()
    assert "secret" not in raised.value.message
    return raised.value


def test_a_batch_is_written_once_however_often_it_is_run(server, rows, numbered):
    out = server.sink()
    out.prepare(rows(0, 1))
    for _ in range(2):
        out.write(rows(0, 3), numbered(0))
    out.write(rows(3, 5), numbered(1))
    ahead = fault_of(lambda: out.write(rows(0, 3), numbered(0)))
    assert (ahead.code, "has batch 1, and the query is only at batch 0" in ahead.message) == ("LEDGER001", True)
    assert server.table("t") == [(number, f"n{number}") for number in range(5)]
    assert [(row[1], int(row[2])) for row in server.table("penstock_ledger")] == [("out", 1)]
    assert out.declared_capabilities.guarantee.promise == "exactly-once"


def test_queries_and_sinks_are_told_apart(server, rows, numbered):
    out = server.sink()
    out.prepare(rows(0, 1))
    for query, name in (("a", "out"), ("b", "out"), ("a", "other")):
        for _ in range(2):
            out.write(rows(0, 1), numbered(0, name, query))
    assert len(server.table("t")) == 3


def test_without_a_ledger_a_batch_that_is_run_again_is_written_again(server, rows, numbered):
    out = server.sink(ledger=False)
    out.prepare(rows(0, 1))
    for _ in range(2):
        out.write(rows(0, 2), numbered(0))
    assert len(server.table("t")) == 4
    assert out.declared_capabilities.guarantee.promise == "at-least-once"
    with pytest.raises(Exception, match=r"(?i)penstock_ledger"):
        server.table("penstock_ledger")


def test_a_crash_before_the_transaction_leaves_nothing(server, rows, numbered, monkeypatch):
    out = server.sink()
    out.prepare(rows(0, 1))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setattr(Database, "merge", crash)
        with pytest.raises(KeyboardInterrupt):
            out.write(rows(0, 3), numbered(0))
    assert server.table("t") == []
    out.write(rows(0, 3), numbered(0))
    assert len(server.table("t")) == 3


def test_rows_of_a_task_that_was_tried_again_after_its_commit_count_once(server, rows, numbered, monkeypatch, spark):
    out = server.sink()
    out.prepare(rows(0, 1))
    honest = Database.stage

    def twice(database: Database, marked: Any, staged: Any) -> int:
        count = honest(database, marked, staged)
        # What an earlier attempt of the first partition has committed before its machine went away.
        lost = marked.where("penstock_partition = 0").withColumn("penstock_attempt", marked.penstock_attempt - 1000)
        # And what a run before this one has left.
        old = marked.selectExpr("id", "name", "penstock_run - 1 AS penstock_run", "penstock_partition",
                                "penstock_attempt") if "id" in marked.columns else marked.limit(0)  # fmt: skip
        database.append(lost, staged.table)
        database.append(old, staged.table)
        return count

    monkeypatch.setattr(Database, "stage", twice)
    out.write(rows(0, 10), numbered(0))
    assert [row[0] for row in server.table("t")] == list(range(10))


def test_staged_rows_that_are_gone_are_missed(server, rows, numbered, monkeypatch):
    out = server.sink()
    out.prepare(rows(0, 1))
    honest = Database.merge

    def robbed(database: Database, staged: Any, *more: Any) -> None:
        server.run(f"DELETE FROM {staged.table}")
        honest(database, staged, *more)

    with monkeypatch.context() as robbing:
        robbing.setattr(Database, "merge", robbed)
        assert fault_of(lambda: out.write(rows(0, 3), numbered(0))).code == "JDBC006"
    out.write(rows(0, 3), numbered(0))
    assert len(server.table("t")) == 3


def test_a_value_that_is_refused_stops_the_batch_and_leaves_nothing(server, rows, numbered):
    long = rows(0, 3).selectExpr("id", "repeat('x', 11) AS name")
    for ledger in (True, False):
        out = server.sink(ledger=ledger)
        out.prepare(long)
        assert fault_of(lambda out=out: out.write(long, numbered(0))).code == "JDBC005"
        assert server.table("t") == []


def test_what_the_rows_themselves_raise_is_not_blamed_on_the_database(server, rows, numbered):
    out = server.sink()
    out.prepare(rows(0, 1))
    bad = rows(0, 3).selectExpr("id", "raise_error('no good') AS name").selectExpr("id", "CAST(name AS STRING) AS name")
    with pytest.raises(Exception, match="no good") as raised:
        out.write(bad, numbered(0))
    assert not isinstance(raised.value, Fault)


def test_columns_go_by_name_in_whatever_case(server, rows, numbered):
    out = server.sink()
    swapped = rows(0, 2).selectExpr("name AS NAME", "id AS Id")
    out.prepare(swapped)
    out.write(swapped, numbered(0))
    assert server.table("t") == [(0, "n0"), (1, "n1")]
    fault = fault_of(lambda: out.judge(rows(0, 1).withColumnRenamed("name", "nam")))
    assert fault.code == "JDBC003"
    assert "did you mean `name`?" in fault.message.lower()
    both = rows(0, 1).selectExpr("id", "name", "name AS other").toDF("id", "name", "NAME")
    assert fault_of(lambda: out.judge(both)).code == "JDBC003"


def test_names_may_hold_anything(server, rows, numbered):
    server.run('CREATE TABLE "Odd ""t" ("Group" BIGINT, "a b" VARCHAR(10))')
    out = server.sink(table='"Odd ""t"', column_types="`a b` VARCHAR(10)")
    odd = rows(0, 2).toDF("Group", "a b")
    out.prepare(odd)
    for _ in range(2):
        out.write(odd, numbered(0))
    assert server.table('"Odd ""t"') == [(0, "n0"), (1, "n1")]


def test_a_table_that_is_not_there_and_a_driver_that_is_not(server, rows):
    fault = fault_of(lambda: server.sink(table="nowhere").judge(rows(0, 1)))
    assert (fault.code, fault.keys) == ("JDBC002", ("table",))
    for keys in ({"driver": "no.such.Driver"}, {"url": "jdbc:nothing://x"}):
        fault = fault_of(lambda keys=keys: server.sink(**keys).judge(rows(0, 1)))
        assert (fault.code, fault.keys) == ("JDBC001", ("driver",))


@pytest.mark.parametrize("change", [("secret", "wrong"), ("penstock", "nobody"), ("port", "1")])
def test_a_server_that_does_not_answer_or_refuses(postgres, rows, change):
    word, other = change
    port = "1" if word == "port" else postgres.port
    keys = {"username": "penstock", "password": "secret"}
    keys = {key: other if value == word else value for key, value in keys.items()}
    url = f"jdbc:postgresql://127.0.0.1:{port}/penstock"
    fault = fault_of(lambda: Jdbc(url=url, table="t", **keys).judge(rows(0, 1)))
    assert (fault.code, fault.keys) == ("JDBC001", ("url",))
    assert not keys["password"] or keys["password"] not in fault.message


def test_a_ledger_that_cannot_be_made(server, rows):
    # Derby makes a schema by itself, but takes no table in its own.
    schema = "SYS" if "derby" in server.sink().url else "no_such_schema"
    fault = fault_of(lambda: server.sink(ledger_schema=schema).prepare(rows(0, 1)))
    assert (fault.code, fault.keys) == ("JDBC004", ("ledger",))


@pytest.mark.covers("sink.jdbc", "foreach-batch.batch-writer")
def test_a_stream_is_written_by_spark_batch_by_batch(server, spark, numbered, tmp_path):
    out = server.sink()
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    stream = stream.selectExpr("value AS id", "concat('n', value) AS name")
    out.prepare(stream)
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    query = writer.foreachBatch(lambda batch, number: out.write(batch, numbered(number))).start()
    query.awaitTermination(60)
    assert query.exception() is None
    assert [row[0] for row in server.table("t")] == list(range(5))


def test_passwords_in_a_url_are_hidden():
    for url in (
        "jdbc:x://h/d?user=a&password=hush-hush",
        "jdbc:x:d;password=hush-hush;a=b",
        "jdbc:x://a:hush-hush@h/d",
    ):
        assert "hush" not in Jdbc(url=url, table="t").hidden(f"cannot open {url}: hush-hush")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"url": "postgresql://h/d"}, "should be a JDBC URL"),
        ({"ledger_schema": "a; DROP TABLE t"}, "should be a plain name"),
        ({"table": ""}, "at least 1 character"),
        ({"spark_options": {"batchsize": 5}}, "write `batch_size` instead"),
    ],
)
def test_wrong_keys_are_refused(keys, said):
    with pytest.raises(ValidationError, match=said):
        jdbc.Jdbc(**{"url": "jdbc:x://h/d", "table": "t"} | keys)
