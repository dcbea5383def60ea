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
from tests.frames import frame

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
        made = frame(self.spark, rows, schema)
        sink = self.target.sink(**{"keys": ["id"]} | keys)
        sink.judge(made)
        sink.prepare(made)
        number = self.batches - 1 if again else self.batches
        sink.write(made, Batch("upserts", "the-query", "out", number, put_aside=_refuse, ledger=InMemory()))
        self.batches = number + 1

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return in_order(*self.target.rows())


def in_order(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def _refuse(rows: object) -> None:
    raise AssertionError("an upsert puts nothing aside")


@pytest.fixture(params=TARGETS)
def upsert(request: pytest.FixtureRequest, engine: Engine) -> Upserts:
    return Upserts(request.param(request), engine.session({"spark.sql.shuffle.partitions": "2"}))


def test_keys_alone(upsert: Upserts) -> None:
    """One table for what `keys` alone mean, a key or a few for each: a new table for each would take minutes."""
    upsert(
        (1, "one", 1), (2, "two", 1), (None, "none", 1),
        (11, "one", 1), (21, "one", 1), (31, "one", 1),
    )  # fmt: skip
    upsert((2, "zwei", 0), (3, "drei", 0), (None, "keins", 0), (11, "uno", 1), (12, "due", 1))
    kept = [(1, "one", 1), (2, "zwei", 0), (3, "drei", 0), (None, "keins", 0)]
    """New keys are inserted, known ones updated, and a null is a key like any other."""
    again = [(11, "uno", 1), (12, "due", 1)]
    others = [(21, "one", 1), (31, "one", 1)]

    # It cannot happen that a batch holds other rows when it is run again: here they show that none was written.
    upsert((11, "changed", 1), (13, "new", 1), again=True)
    for twice in ((31, "a", 1), (31, "b", 2)), ((37, "a", 1), (37, "a", 1)), ((None, "a", 1), (None, "b", 1)):
        with pytest.raises(Fault) as raised:
            upsert(*twice, (39, "other", 1))
        assert raised.value.code == "SINK005"
        assert raised.value.keys == ("keys",)
        assert f"2 rows of the key id={twice[0][0]}" in raised.value.message
    for schema, keys, at in UNFIT:
        with pytest.raises(Fault) as raised:
            upsert(schema=schema, **keys)
        assert raised.value.code == upsert.target.unfit
        assert at is None or raised.value.keys[0] == at
    assert upsert.rows == in_order(*kept, *again, *others), "what is run again or refused changes nothing"

    upsert((13, "tre", 1), (31, "uno", 1), (39, "other", 1))
    # Columns that the rows do not have keep what they hold.
    upsert((21, 2), (22, 2), schema="id BIGINT, at INT")
    others = [(21, "one", 2), (22, None, 2), (31, "uno", 1), (39, "other", 1)]
    assert upsert.rows == in_order(*kept, *again, (13, "tre", 1), *others)


UNFIT: list[tuple[str, dict[str, Any], str | None]] = [
    ("id BIGINT, name STRING, more INT", {}, None),
    ("name STRING, at INT", {}, "keys"),
    ("id BIGINT, name STRING", {"latest_by": "at"}, "latest_by"),
]
"""Rows that do not fit: their columns, the keys of the sink, and the one that is at fault."""


def test_the_greatest_wins_in_whatever_order_rows_stand_and_whichever_batch_they_come_in(upsert: Upserts) -> None:
    upsert(
        (1, "old", 1), (1, "new", 2), (2, "new", 2), (2, "old", 1), (3, "none", None), (3, "some", 1),
        (None, "old", 1), (None, "new", 2),
        (11, "new", 5), (12, "new", 5), (13, "new", 5), (14, "new", None), (15, "new", None), latest_by="at",
    )  # fmt: skip
    upsert((11, "older", 4), (12, "same", 5), (13, "none", None), (14, "dated", 1), (15, "none", None), latest_by="at")
    assert upsert.rows == in_order(
        (1, "new", 2), (2, "new", 2), (3, "some", 1), (None, "new", 2),
        (11, "new", 5), (12, "same", 5), (13, "new", 5), (14, "dated", 1), (15, "none", None),
    )  # fmt: skip


def test_a_row_may_delete_its_key_which_may_come_back_in_the_same_batch(upsert: Upserts) -> None:
    feed: dict[str, Any] = {"delete_when": "name = 'gone'", "latest_by": "at"}
    upsert(
        (1, "one", 1), (2, "two", 5), (3, "three", 1), (None, "none", 1), (9, "gone", 1),
        (11, "one", 1), (12, "two", 1), **feed,
    )  # fmt: skip
    later = [(11, "one", 1), (12, "two", 1)]
    assert upsert.rows == in_order((1, "one", 1), (2, "two", 5), (3, "three", 1), (None, "none", 1), *later)
    upsert(
        (1, "gone", 2), (2, "gone", 4), (None, "gone", 1), (8, "gone", 1), (3, None, 2),
        (11, "back", 3), (11, "gone", 2), (12, "gone", 3), (12, "changed", 2), **feed,
    )  # fmt: skip
    assert upsert.rows == in_order((2, "two", 5), (3, None, 2), (11, "back", 3))
    # A deleted key leaves no trace, so an older row of it is new to the table.
    upsert((12, "older", 1), **feed)
    assert upsert.rows == in_order((2, "two", 5), (3, None, 2), (11, "back", 3), (12, "older", 1))


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
