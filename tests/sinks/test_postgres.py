"""A table of a PostgreSQL database."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from pydantic import ValidationError

from penstock.connections.postgres_names import TableName
from penstock.problems import Fault, UserError, errors_in
from penstock.sinks import Postgres, postgres_staging
from penstock.sinks import postgres as postgres_sink
from penstock.sinks.batch import Batch
from tests.conftest import place
from tests.frames import frame

pytestmark = [pytest.mark.spark, pytest.mark.services]

Sink = Callable[..., Postgres]


@pytest.fixture
def sink(postgres, pg) -> Sink:
    return lambda **keys: Postgres(**{"url": postgres.url, "table": "t"} | keys)


@pytest.fixture
def query_id() -> str:
    return uuid4().hex


def batch(query_id: str, number: int, sink: str = "out") -> Batch:
    return Batch("p", query_id, sink, number, put_aside=lambda rows: None)


def fault_of(action: Callable[[], object]) -> Fault:
    with pytest.raises(Fault) as raised:
        action()
    assert "secret" not in raised.value.message
    assert raised.value.fix
    return raised.value


def ids(pg, table: str = "t") -> list[int]:
    return [row[0] for row in pg.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]


def staged(pg) -> int:
    """Rows in all staging tables."""
    names = pg.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'staging_%'").fetchall()
    return sum(pg.execute(f"SELECT count(*) FROM penstock_ledger.{name}").fetchone()[0] for (name,) in names)


# --- how rows get in


def test_a_batch_is_appended_once_however_often_it_is_run(sink, spark, pg, query_id):
    out, rows = sink(create_table=True), spark.range(5)
    out.prepare(rows)
    out.write(rows, batch(query_id, 0))
    out.write(rows, batch(query_id, 0))
    out.write(spark.range(5, 7), batch(query_id, 1))
    with pytest.raises(Fault, match="has batch 1, and the query is only at batch 0") as ahead:
        out.write(rows, batch(query_id, 0))
    assert ahead.value.code == "LEDGER001"
    assert ids(pg) == [0, 1, 2, 3, 4, 5, 6]
    assert staged(pg) == 0
    noted = pg.execute("SELECT sink, batch FROM penstock_ledger.ledger WHERE query_id = %s", [query_id]).fetchall()
    assert noted == [("out", 1)]


def test_an_empty_batch_is_noted_too(sink, spark, pg, query_id):
    out, rows = sink(create_table=True), spark.range(0)
    out.prepare(rows)
    out.write(rows, batch(query_id, 0))
    assert ids(pg) == []
    out.write(spark.range(1), batch(query_id, 0))
    assert ids(pg) == []


def test_overwrite_leaves_the_rows_of_the_last_batch(sink, spark, pg, query_id):
    out = sink(create_table=True, write="overwrite")
    out.prepare(spark.range(3))
    for number, rows in enumerate([spark.range(3), spark.range(10, 12), spark.range(0)]):
        out.write(rows, batch(query_id, number))
        out.write(rows, batch(query_id, number))
        assert ids(pg) == [row.id for row in rows.collect()]
    assert out.declared_capabilities.output_modes == {"complete"}


def test_two_queries_with_a_sink_of_one_name_and_two_sinks_of_one_query_are_told_apart(sink, spark, pg):
    out, rows = sink(create_table=True), spark.range(1)
    out.prepare(rows)
    for query, name in (("a", "out"), ("b", "out"), ("a", "other")):
        for _ in range(2):
            out.write(rows, batch(f"{query}-{id(rows)}", 0, name))
    assert ids(pg) == [0, 0, 0]


def test_a_task_that_fails_after_its_copy_is_not_counted_twice(sink, spark, pg, query_id, monkeypatch):
    out, rows = sink(create_table=True), spark.range(0, 100, 1, 2)
    out.prepare(rows)
    honest = postgres_staging.copier

    def shaky(*given: Any) -> Any:
        copy = honest(*given)

        def copy_and_fail(batches: Any) -> Any:
            from pyspark import TaskContext

            yield from copy(batches)
            if TaskContext.get().partitionId() == 0 and TaskContext.get().attemptNumber() < 2:
                raise RuntimeError("the machine went away")

        return copy_and_fail

    monkeypatch.setattr(postgres_staging, "copier", shaky)
    left: list[int] = []
    clear = postgres_staging.Staging.clear

    def count_and_clear(staging: postgres_staging.Staging, connection: psycopg.Connection) -> None:
        left.append(staged(pg))
        clear(staging, connection)

    monkeypatch.setattr(postgres_staging.Staging, "clear", count_and_clear)
    out.write(rows, batch(query_id, 0))
    assert left == [200]
    assert ids(pg) == list(range(100))


def test_a_crash_between_the_copy_and_the_transaction_leaves_nothing(sink, spark, pg, query_id, monkeypatch):
    out, rows = sink(create_table=True), spark.range(3)
    out.prepare(rows)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setattr(postgres_sink, "merge", crash)
        with pytest.raises(KeyboardInterrupt):
            out.write(rows, batch(query_id, 0))
    assert ids(pg) == []
    assert staged(pg) == 3
    out.write(rows, batch(query_id, 0))
    assert ids(pg) == [0, 1, 2]
    assert staged(pg) == 0


def test_staged_rows_that_a_crash_of_the_server_took_are_missed(sink, spark, pg, query_id, monkeypatch):
    out, rows = sink(create_table=True), spark.range(3)
    out.prepare(rows)
    honest = postgres_sink.merge

    def robbed(connection: psycopg.Connection, ledger: Any, target: Any, staging: Any, *more: Any) -> None:
        connection.execute(f"TRUNCATE {staging.table.quoted}")  # as an unlogged table is after a crash
        honest(connection, ledger, target, staging, *more)

    with monkeypatch.context() as robbing:
        robbing.setattr(postgres_sink, "merge", robbed)
        fault = fault_of(lambda: out.write(rows, batch(query_id, 0)))
    assert fault.code == "POSTGRES007"
    out.write(rows, batch(query_id, 0))
    assert ids(pg) == [0, 1, 2]


def test_two_drivers_of_one_query_write_a_batch_once(sink, spark, pg, query_id):
    out, rows = sink(create_table=True), spark.range(0, 100, 1, 2)
    out.prepare(rows)

    def write(_: int) -> str:
        try:
            out.write(rows, batch(query_id, 0))
        except Fault as fault:
            return fault.code
        return "written"

    with ThreadPoolExecutor(3) as pool:
        ended = list(pool.map(write, range(3)))
    assert "written" in ended
    assert set(ended) <= {"written", "POSTGRES007"}  # one may have cleared what another had staged
    assert ids(pg) == list(range(100))


def test_several_may_start_at_once(sink, spark, pg):
    pg.execute("DROP SCHEMA IF EXISTS penstock_ledger CASCADE")
    rows = spark.range(1)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: sink(create_table=True, write="upsert", keys=["id"]).prepare(rows), range(12)))
    assert ids(pg) == []
    assert pg.execute("SELECT count(*) FROM pg_indexes WHERE tablename = 't'").fetchone() == (1,)


def test_the_number_of_connections_can_be_limited(sink, spark, pg, query_id):
    out, rows = sink(create_table=True, max_connections=1), spark.range(0, 10, 1, 5)
    out.prepare(rows)
    out.write(rows, batch(query_id, 0))
    assert ids(pg) == list(range(10))


def test_upserts_of_two_queries_into_one_table_do_not_get_in_each_others_way(sink, spark, pg):
    # Without a unique index nothing but Penstock's own lock keeps a key from being inserted twice.
    pg.execute("CREATE TABLE t (id bigint, name text)")
    out = sink(write="upsert", keys=["id"])
    rows = spark.range(0, 200, 1, 2).selectExpr("id", "'x' AS name")
    out.prepare(rows)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: out.write(rows, batch(f"{number}-{uuid4()}", 0)), range(4)))
    assert ids(pg) == list(range(200))


def test_an_upsert_compares_texts_as_spark_does(sink, spark, pg, query_id):
    pg.execute('CREATE TABLE t (id bigint, version text COLLATE "en-x-icu")')
    out = sink(write="upsert", keys=["id"], latest_by="version")
    for number, version in enumerate(["a", "B"]):  # `B` comes before `a`, whatever a language's dictionary says
        rows = frame(spark, [(1, version)], "id BIGINT, version STRING")
        out.prepare(rows)
        out.write(rows, batch(query_id, number))
    assert pg.execute("SELECT version FROM t").fetchall() == [("a",)]


def test_keys_that_are_one_only_to_postgres_are_refused(sink, spark, pg, query_id):
    pg.execute("CREATE TABLE t (id char(3), at int)")
    out = sink(write="upsert", keys=["id"], latest_by="at")
    rows = frame(spark, [("a", 1), ("a ", 2)], "id STRING, at INT")
    out.prepare(rows)
    assert fault_of(lambda: out.write(rows, batch(query_id, 0))).code == "SINK005"
    assert ids(pg) == []


# --- tables, columns and types

TYPES = """
    SELECT CAST(1 AS TINYINT) AS tiny, CAST(2 AS SMALLINT) AS small, 3 AS medium, CAST(4 AS BIGINT) AS big,
        CAST(1.5 AS FLOAT) AS single, CAST('NaN' AS DOUBLE) AS nan, CAST('-Infinity' AS DOUBLE) AS low,
        CAST(12.340 AS DECIMAL(10, 3)) AS exact, 'a"b,\n\\\\.\nc' AS text, '' AS empty, CAST(NULL AS STRING) AS nothing,
        X'00FF5C' AS bytes, true AS yes, DATE'2024-02-29' AS day,
        TIMESTAMP'2024-10-27T00:30:00.123456Z' AS moment, TIMESTAMP'-0043-03-15T12:00:00Z' AS before,
        TIMESTAMP_NTZ'2024-10-27T02:30:00.5' AS wall,
        array(1, NULL, 3) AS numbers, array('a', NULL, '', 'NULL', '{"x"\\\\,}') AS texts, array() AS none,
        array(array(1.5D, 2D), array(3D, NULL)) AS matrix, array(TIMESTAMP'2024-01-01T00:00:00Z') AS moments,
        array(X'01') AS blobs,
        named_struct('a', 1, 'b', CAST(NULL AS INT)) AS struct, map('k', array(1)) AS map,
        parse_json('{"v": [1, null]}') AS variant, array(named_struct('a', 1)) AS structs
"""
HELD = {
    "tiny": ("smallint", 1), "small": ("smallint", 2), "medium": ("integer", 3), "big": ("bigint", 4),
    "single": ("real", 1.5), "low": ("double precision", float("-inf")), "exact": ("numeric(10,3)", Decimal("12.340")),
    "text": ("text", 'a"b,\n\\.\nc'), "empty": ("text", ""), "nothing": ("text", None), "bytes": ("bytea", b"\0\xff\\"),
    "yes": ("boolean", True), "day": ("date", date(2024, 2, 29)),
    "moment": ("timestamp with time zone", datetime(2024, 10, 27, 0, 30, 0, 123456, tzinfo=UTC)),
    "wall": ("timestamp without time zone", datetime(2024, 10, 27, 2, 30, 0, 500000)),
    "numbers": ("integer[]", [1, None, 3]), "texts": ("text[]", ["a", None, "", "NULL", '{"x"\\,}']),
    "matrix": ("double precision[]", [[1.5, 2.0], [3.0, None]]),
    "moments": ("timestamp with time zone[]", [datetime(2024, 1, 1, tzinfo=UTC)]), "blobs": ("bytea[]", [b"\1"]),
    "struct": ("jsonb", {"a": 1, "b": None}), "map": ("jsonb", {"k": [1]}), "variant": ("jsonb", {"v": [1, None]}),
    "structs": ("jsonb", [{"a": 1}]),
}  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Europe/Oslo"])
def test_every_type_gets_there_and_says_the_same(sink, engine, pg, query_id, zone):
    spark = engine.session({"spark.sql.session.timeZone": zone})
    rows = spark.sql(TYPES).drop("none")
    out = sink(create_table=True)
    out.prepare(rows)
    out.write(rows, batch(query_id, 0))
    names = ", ".join(f'"{name}"' for name in HELD)
    pg.execute("SET TimeZone TO 'UTC'")
    values = pg.execute(f"SELECT {names} FROM t").fetchone()
    types = pg.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass"
    )
    types = dict(types.fetchall())
    assert {name: (types[name], value) for name, value in zip(HELD, values, strict=True)} == HELD
    assert pg.execute("SELECT nan::text, before::text FROM t").fetchone() == ("NaN", "0044-03-15 12:00:00+00 BC")


def test_columns_that_are_there_decide_how_a_value_is_read(sink, engine, pg, query_id):
    pg.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    pg.execute("CREATE DOMAIN positive AS numeric CHECK (VALUE > 0)")
    pg.execute(
        "CREATE TABLE t (id int, key uuid, host inet, doc jsonb, raw json, mood mood, price positive, moods mood[],"
        " at timestamptz, wall timestamp, span interval, word varchar(5), number text, day timestamptz,"
        " more int DEFAULT 7, own bigint GENERATED ALWAYS AS IDENTITY)"
    )
    rows = engine.session({"spark.sql.session.timeZone": "Europe/Oslo"}).sql(
        "SELECT 5L AS id, '6f1e7c0e-0000-4000-8000-000000000001' AS key, '10.0.0.1' AS host, '{\"a\": 1}' AS doc,"
        " array(1) AS raw, 'bad' AS mood, 1.25 AS price, array('good', NULL) AS moods,"
        " TIMESTAMP_NTZ'2024-07-01T12:00:00' AS at, TIMESTAMP'2024-07-01T12:00:00Z' AS wall, '2 hours' AS span,"
        " 'short' AS word, 42 AS number, DATE'2024-07-01' AS day"
    )
    out = sink()
    out.prepare(rows)
    out.write(rows, batch(query_id, 0))
    pg.execute("SET TimeZone TO 'UTC'")
    got = pg.execute("SELECT id, key, host::text, doc, raw, mood::text, price, moods::text, word, number, more FROM t")
    assert got.fetchone() == (
        5, UUID("6f1e7c0e-0000-4000-8000-000000000001"), "10.0.0.1/32", {"a": 1}, [1], "bad", Decimal("1.25"),
        "{good,NULL}", "short", "42", 7,
    )  # fmt: skip
    got = pg.execute("SELECT at::text, wall::text, span::text, day::text FROM t").fetchone()
    assert got == ("2024-07-01 10:00:00+00", "2024-07-01 14:00:00", "02:00:00", "2024-06-30 22:00:00+00")


@pytest.mark.parametrize(
    ("table", "rows", "said"),
    [
        ("id int", "SELECT 1 AS idd", "no column `idd` — did you mean `id`?"),
        ('"ID" int', "SELECT 1 AS id", "no column `id`"),
        ("id int", "SELECT 'x' AS id", 'column `id` is string, and in the table "t" it is integer'),
        ("id int", "SELECT 1.5D AS id", "column `id` is double"),
        ("id int", "SELECT named_struct('a', 1) AS id", "it is integer"),
        ("id int[]", "SELECT array('x') AS id", "column `id` is array<string>"),
        ("id date", "SELECT current_timestamp() AS id", "it is date"),
        ("id text", "SELECT X'00' AS id", "column `id` is binary"),
        ("id int, other int NOT NULL", "SELECT 1 AS id", "needs a value for `other`"),
        ("id int GENERATED ALWAYS AS IDENTITY", "SELECT 1 AS id", "PostgreSQL itself gives `id`"),
        ("id int, n int GENERATED ALWAYS AS (id * 2) STORED", "SELECT 1 AS id, 2 AS n", "PostgreSQL itself gives `n`"),
        ("id int", "SELECT 1 AS id, 2 AS id", "two columns of the rows are named `id`"),
        ("id interval", "SELECT INTERVAL '1' DAY AS id", "column `id` is interval day"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_starts(sink, spark, pg, table, rows, said):
    pg.execute(f"CREATE TABLE t ({table})")
    fault = fault_of(lambda: sink().judge(spark.sql(rows)))
    assert fault.code == "POSTGRES004"
    assert said in fault.message


def test_a_type_that_postgres_lacks_is_refused_when_the_table_is_made(sink, spark, pg):
    fault = fault_of(lambda: sink(create_table=True).judge(spark.sql("SELECT INTERVAL '1' DAY AS span")))
    assert (fault.code, fault.keys) == ("POSTGRES004", ("create_table",))


def test_keys_must_be_comparable_columns(sink, spark, pg):
    pg.execute("CREATE TABLE t (id json)")
    rows = spark.sql("SELECT '1' AS id")
    assert "cannot be compared" in fault_of(lambda: sink(write="upsert", keys=["id"]).judge(rows)).message
    fault = fault_of(lambda: sink(write="upsert", keys=["id"], delete_when="nope = 1").judge(rows))
    assert (fault.code, fault.keys) == ("POSTGRES004", ("delete_when",))
    fault = fault_of(lambda: sink(write="upsert", keys=["ID"]).judge(rows))
    assert (fault.code, fault.keys) == ("POSTGRES004", ("keys",))


@pytest.mark.parametrize(
    ("table", "rows", "said"),
    [
        ("id smallint", "SELECT 100000 AS id", "out of range"),
        ("id varchar(2)", "SELECT 'abc' AS id", "too long"),
        ("id uuid", "SELECT 'abc' AS id", 'invalid input syntax for type uuid: "abc"'),
        ("id jsonb", "SELECT '{' AS id", "column id"),
        ("id text", "SELECT concat('a', chr(0)) AS id", "column `id` holds a text with a NUL character"),
        ("id numeric(3, 1)", "SELECT CAST('NaN' AS DOUBLE) AS id UNION ALL SELECT 1000D", "numeric field overflow"),
        ("id date", "SELECT DATE'0000-01-01' AS id", "out of range"),
        ("id int CHECK (id > 5)", "SELECT 1 AS id", "violates check constraint"),
        ("id int UNIQUE", "SELECT 1 AS id UNION ALL SELECT 1", "duplicate key"),
        ("id int NOT NULL", "SELECT CAST(NULL AS INT) AS id", "null value in column"),
    ],
)
def test_a_value_that_postgres_refuses_stops_the_batch_and_leaves_nothing(sink, spark, pg, query_id, table, rows, said):
    pg.execute(f"CREATE TABLE t ({table})")
    out = sink()
    refused = spark.sql(rows)
    out.prepare(refused)
    fault = fault_of(lambda: out.write(refused, batch(query_id, 0)))
    assert fault.code == "POSTGRES005"
    assert said in fault.message
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert pg.execute("SELECT 1 FROM penstock_ledger.ledger WHERE query_id = %s", [query_id]).fetchone() is None


def test_names_may_hold_anything(sink, spark, pg, query_id):
    pg.execute('CREATE SCHEMA "My ""shop"""')
    table = '"My ""shop""".Group'
    columns = ["Group", "a b", 'q"uo`te', "a.b", "übergröße", "%s", "{}"]
    rows = frame(spark, [tuple(range(7))], ", ".join(f"`{name.replace('`', '``')}` INT" for name in columns))
    out = sink(table=table, create_table=True, write="upsert", keys=columns[:3], latest_by="%s",
               delete_when="`{}` = 99", ledger_schema='led"ger')  # fmt: skip
    out.prepare(rows)
    for number in range(2):
        out.write(rows, batch(query_id, number, 'o"ut'))
    try:
        assert pg.execute('SELECT * FROM "My ""shop"""."Group"').fetchall() == [tuple(range(7))]
        assert pg.execute('SELECT sink, batch FROM "led""ger".ledger').fetchall() == [('o"ut', 1)]
    finally:
        pg.execute('DROP SCHEMA "My ""shop""", "led""ger" CASCADE')


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("shop.Orders", ("shop", "Orders")),
        ('"a.b".c', ("a.b", "c")),
        ('"a""b"', ('a"b',)),
        ("odd name", ("odd name",)),
    ],
)
def test_a_name_of_a_table_is_taken_as_it_stands(text, parts):
    assert TableName.parse(text).parts == parts


@pytest.mark.parametrize("text", ["", ".", "a.", "a.b.c", '"a', 'a"', "a..b", '""'])
def test_what_names_no_table_is_refused(text):
    with pytest.raises(ValidationError, match=r"should be `table` or `schema.table`"):
        Postgres(url="postgresql://localhost/x", table=text)


def test_a_column_that_is_added_to_the_table_is_filled_from_then_on(sink, spark, pg, query_id):
    pg.execute("CREATE TABLE t (id bigint)")
    out = sink()
    out.prepare(spark.range(1))
    out.write(spark.range(1), batch(query_id, 0))
    pg.execute("ALTER TABLE t ADD COLUMN name text")
    out.write(spark.sql("SELECT 2L AS id, 'two' AS name"), batch(query_id, 1))
    pg.execute("ALTER TABLE t ALTER COLUMN name TYPE varchar(10)")
    out.write(spark.sql("SELECT 3L AS id, 'three' AS name"), batch(query_id, 2))
    assert pg.execute("SELECT * FROM t ORDER BY id").fetchall() == [(0, None), (2, "two"), (3, "three")]


# --- servers that do not answer


def test_a_table_that_is_not_there(sink, spark, pg):
    pg.execute("CREATE TABLE orders (id int)")
    for ask in (lambda: sink(table="Orders").probe(), lambda: sink(table="Orders").judge(spark.range(1))):
        fault = fault_of(ask)
        assert (fault.code, fault.keys) == ("POSTGRES003", ("table",))
        assert "did you mean `orders`?" in fault.message
    fault = fault_of(lambda: sink(table="nowhere.t", create_table=True).judge(spark.range(1)))
    assert fault.code == "POSTGRES003"


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("penstock:secret", "penstock:wrong"), "POSTGRES002", "password authentication failed"),
        (("penstock:secret", "nobody:secret"), "POSTGRES002", "password authentication failed"),
        (("penstock:secret@", "penstock@"), "POSTGRES002", "no password supplied"),
        (("/penstock$", "/nowhere"), "POSTGRES002", 'database "nowhere" does not exist'),
        (("127.0.0.1:", "127.0.0.1:1,127.0.0.1:"), None, ""),
    ],
)
def test_a_login_that_is_refused(postgres, pg, change, code, said):
    out = Postgres(url=re.sub(*change, postgres.url), table="t", create_table=True)
    if code is None:
        out.probe()  # the second host answers
        return
    fault = fault_of(out.probe)
    assert (fault.code, fault.keys) == (code, ("url",))
    assert said in fault.message


@pytest.mark.parametrize("host", ["127.0.0.1:1", "10.255.255.1:5432", "no-such-host.invalid"])
def test_a_server_that_does_not_answer(host):
    begun = time.monotonic()
    fault = fault_of(Postgres(url=f"postgresql://penstock:secret@{host}/penstock", table="t").probe)
    assert fault.code == "POSTGRES001"
    assert f"`{host}/penstock`" in fault.message
    assert time.monotonic() - begun < 15


def test_a_server_that_goes_away_in_a_batch_is_told_and_the_batch_is_written_later(
    postgres, sink, spark, pg, query_id, monkeypatch
):
    pg.execute("CREATE TABLE t (id bigint)")
    out, rows = sink(), spark.range(2)
    out.prepare(rows)
    honest = postgres_sink.stage

    def stopping(*given: Any) -> Any:
        postgres.stop()
        return honest(*given)

    with monkeypatch.context() as stopped:
        stopped.setattr(postgres_sink, "stage", stopping)
        fault = fault_of(lambda: out.write(rows, batch(query_id, 0)))
    postgres.start()
    assert fault.code == "POSTGRES001"
    out.write(rows, batch(query_id, 0))
    with psycopg.connect(postgres.url) as again:
        assert ids(again) == [0, 1]


def test_a_user_who_may_not(postgres, sink, spark, pg, query_id):
    pg.execute("DROP SCHEMA IF EXISTS penstock_ledger CASCADE")
    pg.execute("CREATE TABLE t (id bigint)")
    pg.execute("DROP ROLE IF EXISTS guest")
    pg.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-word'")
    pg.execute("GRANT USAGE ON SCHEMA public TO guest")
    guest = {"url": postgres.url.replace("penstock:secret", "guest"), "password": "guest-word"}
    rows = spark.range(1)
    try:
        fault = fault_of(lambda: sink(**guest).prepare(rows))
        assert fault.code == "POSTGRES006"
        assert "guest-word" not in fault.message
        sink().prepare(rows)  # makes the ledger
        pg.execute("GRANT USAGE, CREATE ON SCHEMA penstock_ledger TO guest")
        pg.execute("GRANT SELECT, INSERT, UPDATE ON penstock_ledger.ledger TO guest")
        sink(**guest).prepare(rows)
        assert fault_of(lambda: sink(**guest).write(rows, batch(query_id, 0))).code == "POSTGRES006"
        pg.execute("GRANT INSERT ON t TO guest")
        sink(**guest).write(rows, batch(query_id, 0))
        assert ids(pg) == [0]
    finally:
        pg.execute("DROP OWNED BY guest")
        pg.execute("DROP ROLE guest")
        pg.execute("DROP SCHEMA IF EXISTS penstock_ledger CASCADE")


# --- as users write it

COUNTS = """
    pipeline: counts
    latency: low
    sources: {words: {type: files, path: in, format: {type: csv, schema: 'word STRING'}}}
    steps: {counts: {sql: "SELECT word, count(*) AS n FROM words GROUP BY word"}}
    sinks:
      table: {of: counts, type: postgres, connection: shop, table: counts, %s}
    queries: {counts: {mode: %s}}
"""
SETTINGS = """
name: test
connections:
  shop: {type: postgres, url: "jdbc:postgresql://127.0.0.1:%d/penstock", username: penstock, password: secret}
"""


@pytest.mark.parametrize(
    ("keys", "mode"),
    [
        ("write: upsert, keys: [word], create_table: true", "update"),
        ("write: overwrite, create_table: true", "complete"),
    ],
)
def test_a_pipeline_keeps_counts_in_a_table(project_at, run_once, postgres, pg, keys, mode):
    root = project_at(COUNTS % (keys, mode), files={"in/1.csv": "a\nb\na\n"}, settings=SETTINGS % postgres.port)
    result = run_once(root)
    assert result.ok, result.problems
    assert result.queries[0].promise == "exactly-once"
    place(root / "in/2.csv", "b\nb\nc\n")
    assert run_once(root).ok
    assert pg.execute("SELECT word, n FROM counts ORDER BY word").fetchall() == [("a", 2), ("b", 3), ("c", 1)]


@pytest.mark.parametrize("code", ["POSTGRES002", "POSTGRES003"], ids=["wrong password", "no table"])
def test_what_is_wrong_is_told_at_the_users_line(project_at, run_once, postgres, pg, code):
    settings = SETTINGS % postgres.port
    if code == "POSTGRES002":
        settings = settings.replace("password: secret", "password: wrong")
    root = project_at(COUNTS % ("write: upsert, keys: [word]", "update"), files={"in/1.csv": "a\n"}, settings=settings)
    try:
        problems = run_once(root).problems
    except UserError as error:
        problems = error.problems
    problems = errors_in(problems)  # that the password stands in the file is told too
    assert [problem.code for problem in problems] == [code]
    assert problems[0].where is not None
    assert "pipelines/p0.yaml:6" in str(problems[0].where)
