"""A table of a PostgreSQL database, to join a stream with."""

from __future__ import annotations

from datetime import datetime

import pytest
from pydantic import ValidationError

from penstock.connections.postgres import Postgres as Connection
from penstock.problems import Fault
from penstock.sources import Postgres
from tests.conftest import place


@pytest.fixture
def cities(pg, postgres):
    pg.execute(
        'CREATE TABLE "City" (id int, name text, at timestamptz, wall timestamp, tags text[], price numeric(8, 2))'
    )
    pg.execute(
        """INSERT INTO "City" SELECT n, 'city ' || n, '2024-07-01T12:00Z', '2024-07-01T12:00', '{a,b}', n FROM"""
        " generate_series(1, 10) n"
    )
    return {"url": postgres.url}


@pytest.mark.spark
@pytest.mark.services
class TestReads:
    def test_a_table_is_read_as_it_is(self, spark, cities):
        source = Postgres(table="City", **cities)
        source.probe()
        rows = source.load(spark)
        assert [field.dataType.simpleString() for field in rows.schema.fields] == [
            "int", "string", "timestamp", "timestamp_ntz", "array<string>", "decimal(8,2)",
        ]  # fmt: skip
        first = rows.where("id = 1").first()
        assert (first.name, first.tags) == ("city 1", ["a", "b"])
        assert first.wall == datetime(2024, 7, 1, 12)
        assert rows.where("at = TIMESTAMP'2024-07-01T12:00:00Z'").count() == 10

    def test_a_query_is_postgres_own_sql(self, spark, cities):
        source = Postgres(query='SELECT id % 2 AS odd, count(*) AS n FROM "City" GROUP BY 1 -- both\n;', **cities)
        source.probe()
        assert sorted(map(tuple, source.load(spark).collect())) == [(0, 5), (1, 5)]

    def test_a_read_may_be_split(self, spark, cities):
        split = {"partition_column": "id", "lower_bound": 3, "upper_bound": 8, "num_partitions": 3}
        for what in ({"table": "City"}, {"query": 'SELECT id FROM "City"'}):
            rows = Postgres(fetch_size=2, **what, **split, **cities).load(spark)
            assert rows.rdd.getNumPartitions() == 3
            assert sorted(row.id for row in rows.select("id").collect()) == list(range(1, 11))

    @pytest.mark.parametrize(
        ("keys", "code"),
        [
            ({"table": "city"}, "POSTGRES003"),
            ({"table": "nowhere.City"}, "POSTGRES003"),
            ({"query": "SELEC 1"}, "POSTGRES008"),
            ({"query": "SELECT nope FROM pg_class"}, "POSTGRES008"),
            ({"table": "City", "password": "wrong"}, "POSTGRES002"),
            ({"table": "City", "url": "postgresql://127.0.0.1:1/x"}, "POSTGRES001"),
        ],
    )
    def test_what_is_wrong_is_told(self, cities, keys, code):
        with pytest.raises(Fault) as raised:
            Postgres(**cities | keys).probe()
        assert raised.value.code == code
        assert "secret" not in raised.value.message

    def test_every_batch_sees_the_table_as_it_is_then(self, project_at, run_once, spark, pg, postgres):
        pg.execute("CREATE TABLE names (id int, name text)")
        pg.execute("INSERT INTO names VALUES (1, 'one'), (2, 'two')")
        root = project_at(
            """
            pipeline: named
            latency: low
            sources:
              ids: {type: files, path: in, format: {type: csv, schema: id INT}, max_files_per_trigger: 1}
              names: {type: postgres, connection: shop, table: names, refresh: batch}
            steps: {named: {sql: "SELECT id, name FROM ids JOIN names USING (id)"}}
            sinks: {out: {of: named, type: python, each_batch: "renames:write"}}
            """,
            files={
                "in/1.csv": "1\n2\n",
                "in/2.csv": "1\n2\n",
                # Between the batches of one run, somebody changes the table.
                "renames.py": f"""
import pathlib, psycopg
def write(rows, batch):
    found = sorted(f"{{batch.number}} {{row.id}} {{row.name}}" for row in rows.collect())
    with (pathlib.Path(__file__).parent / "out.txt").open("a") as file:
        file.write("".join(f"{{line}}\\n" for line in found))
    with psycopg.connect("{postgres.url}") as connection:
        connection.execute("UPDATE names SET name = name || '!'")
""",
            },
            settings=f'name: test\nconnections: {{shop: {{type: postgres, url: "{postgres.url}"}}}}\n',
        )
        result = run_once(root)
        assert result.ok, result.problems
        assert (root / "out.txt").read_text().splitlines() == ["0 1 one", "0 2 two", "1 1 one!", "1 2 two!"]
        place(root / "in/3.csv", "2\n")
        assert run_once(root).ok
        assert (root / "out.txt").read_text().splitlines()[4:] == ["2 2 two!!"]


URL = "postgresql://localhost/shop"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"url": URL}, "needs `table` or `query`, and not both"),
        ({"url": URL, "table": "a", "query": "SELECT 1"}, "needs `table` or `query`, and not both"),
        ({"table": "a"}, "needs `url`, or `connection`"),
        (
            {"url": URL, "table": "a", "partition_column": "id"},
            "needs `lower_bound`, `upper_bound`, `num_partitions` too",
        ),
        ({"url": "mysql://localhost/shop", "table": "a"}, "should be `postgresql://host:5432/database`"),
        ({"url": "jdbc:postgresql:shop", "table": "a"}, "should be `postgresql://host:5432/database`"),
        ({"url": f"{URL}?sslmod=require", "table": "a"}, "did you mean `sslmode`"),
        ({"url": URL, "table": "a", "refresh": "1 hour"}, "'batch'"),
        ({"url": URL, "table": "a", "spark_options": {"fetchsize": 1}}, "write `fetch_size` instead"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys, said):
    with pytest.raises(ValidationError, match=said.replace("(", r"\(")) as raised:
        Postgres(**keys)
    assert len(raised.value.errors()) == 1


@pytest.mark.parametrize("start", ["", "jdbc:"])
def test_an_address_is_the_same_for_psycopg_and_for_spark(start):
    from psycopg.conninfo import conninfo_to_dict

    url = f"{start}postgresql://a%40b:p%2Fw%20d@one:1,two:2/my%20shop?sslmode=require&connectTimeout=3"
    made = Connection(url=url)
    assert conninfo_to_dict(made.conninfo()) == {
        "host": "one,two", "port": "1,2", "dbname": "my shop", "user": "a@b", "password": "p/w d",
        "sslmode": "require", "connect_timeout": "3", "application_name": "penstock",
    }  # fmt: skip
    assert made.spark_options() == {
        "driver": "org.postgresql.Driver",
        "url": "jdbc:postgresql://one:1,two:2/my%20shop?ApplicationName=penstock&connectTimeout=3&sslmode=require",
        "user": "a@b",
        "password": "p/w d",
    }
    assert "p/w" not in made.hidden("p/w d, p%2Fw%20d")
    assert "p%2Fw" not in made.hidden("p/w d, p%2Fw%20d")
    assert made.place == "one:1,two:2/my shop"


def test_what_is_written_beside_the_url_wins():
    made = Connection(url="jdbc:postgresql://h/d?user=a&password=b", username="c", password="d")
    assert made.spark_options()["user"] == "c"
    assert made.spark_options()["password"] == "d"
    assert "password=d" in made.conninfo()
