"""What `write: upsert` means, one suite over every table that takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pytest
from pydantic import ValidationError

from penstock.engine.session import Engine
from penstock.problems import Fault
from penstock.sinks import Delta, Iceberg, Postgres
from penstock.sinks.batch import Batch
from penstock.sinks.ledger import InMemory
from penstock.sinks.sink import SinkSpec

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, name STRING, at INT"
Rows = Sequence[tuple[Any, ...]]


class Target(Protocol):
    """A new table that is not there yet. To put another format under test, write one of these and list it below."""

    unfit: str
    """The code by which the sink says that rows do not fit into its table."""

    def sink(self, **keys: Any) -> SinkSpec:
        """A sink that makes the table, and upserts into it."""
        ...

    def rows(self) -> list[tuple[Any, ...]]:
        """All that the table holds."""
        ...


class DeltaFolder:
    unfit = "DELTA002"

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.spark: SparkSession = request.getfixturevalue("spark")
        self.path = str(request.getfixturevalue("tmp_path") / "table")

    def sink(self, **keys: Any) -> SinkSpec:
        # Column mapping lets a name hold spaces.
        properties = {"delta.columnMapping.mode": "name"}
        return Delta(path=self.path, write="upsert", table_properties=properties, **keys)

    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.read.format("delta").load(self.path).collect()]


class IcebergTable:
    unfit = "ICEBERG002"

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.spark: SparkSession = request.getfixturevalue("spark")
        self.name = f"lake.upserts.t{uuid4().hex}"

    def sink(self, **keys: Any) -> SinkSpec:
        return Iceberg(table=self.name, write="upsert", **keys)

    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.table(self.name).collect()]


class PostgresTable:
    unfit = "POSTGRES004"

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.pg: psycopg.Connection = request.getfixturevalue("pg")
        self.pg.execute("DROP SCHEMA IF EXISTS penstock_ledger CASCADE")  # the ledger of the test before
        self.url = request.getfixturevalue("postgres").url

    def sink(self, **keys: Any) -> SinkSpec:
        return Postgres(url=self.url, table="upserts", create_table=True, write="upsert", **keys)

    def rows(self) -> list[tuple[Any, ...]]:
        return self.pg.execute("SELECT * FROM upserts").fetchall()


TARGETS: list[Any] = [
    pytest.param(DeltaFolder, id="delta", marks=pytest.mark.spark),
    pytest.param(IcebergTable, id="iceberg", marks=pytest.mark.spark),
    pytest.param(PostgresTable, id="postgres", marks=[pytest.mark.spark, pytest.mark.services]),
]


class Upserts:
    """Upserts batches into one table under one query id, numbered from 0."""

    def __init__(self, target: Target, spark: SparkSession) -> None:
        self.target, self.spark = target, spark
        self.batches = 0

    def __call__(self, *rows: tuple[Any, ...], schema: str = SCHEMA, again: bool = False, **keys: Any) -> None:
        """One batch; `again` gives it the number of the batch before, as after a crash."""
        made = self.spark.createDataFrame(list(rows), schema)
        sink = self.target.sink(**{"keys": ["id"]} | keys)
        sink.prepare(made)
        number = self.batches - 1 if again else self.batches
        sink.write(made, Batch("upserts", "the-query", "out", number, put_aside=_refuse, ledger=InMemory()))
        self.batches = number + 1

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.target.rows(), key=repr)


def _refuse(rows: object) -> None:
    raise AssertionError("an upsert puts nothing aside")


@pytest.fixture(params=TARGETS)
def upsert(request: pytest.FixtureRequest, engine: Engine) -> Upserts:
    return Upserts(request.param(request), engine.session({"spark.sql.shuffle.partitions": "2"}))


def test_new_keys_are_inserted_known_ones_updated_and_a_null_is_a_key_like_any_other(upsert: Upserts) -> None:
    upsert((1, "one", 1), (2, "two", 1), (None, "none", 1))
    upsert((2, "zwei", 0), (3, "drei", 0), (None, "keins", 0))
    assert upsert.rows == [(1, "one", 1), (2, "zwei", 0), (3, "drei", 0), (None, "keins", 0)]


def test_a_batch_that_is_run_again_changes_nothing(upsert: Upserts) -> None:
    upsert((1, "one", 1))
    upsert((1, "uno", 1), (2, "due", 1))
    # It cannot happen that a batch holds other rows when it is run again: here they show that none was written.
    upsert((1, "changed", 1), (3, "new", 1), again=True)
    assert upsert.rows == [(1, "uno", 1), (2, "due", 1)]
    upsert((3, "tre", 1))
    assert upsert.rows == [(1, "uno", 1), (2, "due", 1), (3, "tre", 1)]


def test_the_greatest_wins_among_rows_of_one_key_in_whatever_order_they_stand(upsert: Upserts) -> None:
    upsert(
        (1, "old", 1), (1, "new", 2), (2, "new", 2), (2, "old", 1), (3, "none", None), (3, "some", 1),
        (None, "old", 1), (None, "new", 2), latest_by="at",
    )  # fmt: skip
    assert upsert.rows == [(1, "new", 2), (2, "new", 2), (3, "some", 1), (None, "new", 2)]


def test_an_older_row_does_not_overwrite_a_newer_one(upsert: Upserts) -> None:
    upsert((1, "new", 5), (2, "new", 5), (3, "new", 5), (4, "new", None), (5, "new", None), latest_by="at")
    upsert((1, "older", 4), (2, "same", 5), (3, "none", None), (4, "dated", 1), (5, "none", None), latest_by="at")
    assert upsert.rows == [
        (1, "new", 5), (2, "same", 5), (3, "new", 5), (4, "dated", 1), (5, "none", None),
    ]  # fmt: skip


def test_two_rows_of_one_key_are_refused_where_nothing_says_which_wins(upsert: Upserts) -> None:
    upsert((1, "one", 1))
    for twice in ((1, "a", 1), (1, "b", 2)), ((7, "a", 1), (7, "a", 1)), ((None, "a", 1), (None, "b", 1)):
        with pytest.raises(Fault) as raised:
            upsert(*twice, (9, "other", 1))
        assert raised.value.code == "SINK005"
        assert raised.value.keys == ("keys",)
        assert f"2 rows of the key id={twice[0][0]}" in raised.value.message
    assert upsert.rows == [(1, "one", 1)]
    upsert((1, "uno", 1), (9, "other", 1))
    assert upsert.rows == [(1, "uno", 1), (9, "other", 1)]


def test_a_row_may_delete_its_key(upsert: Upserts) -> None:
    feed: dict[str, Any] = {"delete_when": "name = 'gone'", "latest_by": "at"}
    upsert((1, "one", 1), (2, "two", 5), (3, "three", 1), (None, "none", 1), (9, "gone", 1), **feed)
    assert upsert.rows == [(1, "one", 1), (2, "two", 5), (3, "three", 1), (None, "none", 1)]
    upsert((1, "gone", 2), (2, "gone", 4), (None, "gone", 1), (8, "gone", 1), (3, None, 2), **feed)
    assert upsert.rows == [(2, "two", 5), (3, None, 2)]


def test_a_key_may_be_deleted_and_inserted_in_one_batch(upsert: Upserts) -> None:
    feed: dict[str, Any] = {"delete_when": "name = 'gone'", "latest_by": "at"}
    upsert((1, "one", 1), (2, "two", 1), **feed)
    upsert((1, "back", 3), (1, "gone", 2), (2, "gone", 3), (2, "changed", 2), **feed)
    assert upsert.rows == [(1, "back", 3)]
    # A deleted key leaves no trace, so an older row of it is new to the table.
    upsert((2, "older", 1), **feed)
    assert upsert.rows == [(1, "back", 3), (2, "older", 1)]


def test_several_columns_may_be_the_key(upsert: Upserts) -> None:
    upsert((1, "a", 1), (1, "b", 1), (1, None, 1), (None, None, 1), keys=["id", "name"])
    upsert((1, "a", 2), (1, None, 2), (2, "a", 2), (None, None, 2), (None, "a", 2), keys=["id", "name"])
    assert upsert.rows == [
        (1, "a", 2), (1, "b", 1), (1, None, 2), (2, "a", 2), (None, "a", 2), (None, None, 2),
    ]  # fmt: skip


def test_names_may_hold_anything(upsert: Upserts) -> None:
    schema = '`a key` BIGINT, `It\'s "Name"` STRING, `ORDER` INT'
    keys: dict[str, Any] = {"keys": ["a key", 'It\'s "Name"'], "latest_by": "ORDER", "delete_when": "`ORDER` = 9"}
    upsert((1, "x", 1), (2, "x", 1), schema=schema, **keys)
    upsert((1, "x", 2), (1, "x", 1), (2, "x", 9), schema=schema, **keys)
    assert upsert.rows == [(1, "x", 2)]


def test_columns_that_the_rows_do_not_have_keep_what_they_hold(upsert: Upserts) -> None:
    upsert((1, "one", 1))
    upsert((1, 2), (2, 2), schema="id BIGINT, at INT")
    assert upsert.rows == [(1, "one", 2), (2, None, 2)]


@pytest.mark.parametrize(
    ("schema", "keys", "at"),
    [
        ("id BIGINT, name STRING, more INT", {}, None),
        ("name STRING, at INT", {}, "keys"),
        ("id BIGINT, name STRING", {"latest_by": "at"}, "latest_by"),
    ],
)
def test_rows_that_do_not_fit_are_refused(upsert: Upserts, schema: str, keys: dict[str, Any], at: str | None) -> None:
    upsert((1, "one", 1))
    with pytest.raises(Fault) as raised:
        upsert(schema=schema, **keys)
    assert raised.value.code == upsert.target.unfit
    assert at is None or raised.value.keys[0] == at
    assert upsert.rows == [(1, "one", 1)]


MakeSink = Callable[..., SinkSpec]


@pytest.mark.parametrize("make", [lambda **keys: Delta(path="x", **keys), lambda **keys: Iceberg(table="x", **keys)])
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"write": "upsert"}, "needs `keys`"),
        ({"keys": ["id"]}, "`keys` belongs to `write: upsert`"),
        ({"write": "overwrite", "latest_by": "at"}, "`latest_by` belongs to"),
        ({"write": "replace"}, "'append', 'upsert' or 'overwrite'"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(make: MakeSink, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        make(**keys)


def test_a_way_of_writing_says_which_output_modes_it_takes(tmp_path: Path) -> None:
    assert Delta(path="x").declared_capabilities.output_modes == {"append"}
    assert Delta(path="x", write="overwrite").declared_capabilities.output_modes == {"complete"}
    assert Iceberg(table="x", write="upsert", keys=["id"]).declared_capabilities.output_modes == {
        "append",
        "update",
        "complete",
    }
