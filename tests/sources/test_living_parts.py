"""The parts of a living schema that need no Spark to run: versions, paths, logs of batches, headers."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow
import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from penstock.problems import Fault
from penstock.sources import Files
from penstock.sources.living import csv_headers, pending, schemas, versions
from penstock.sources.living.found import folder_columns, sample
from penstock.storage.storage import LocalStorage
from tests.conftest import place

STORAGE = LocalStorage()


def struct(**fields):
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


def version(number: int, reason: str = "") -> versions.Version:
    return versions.Version(number, struct(id=LongType()).jsonValue(), reason, versions.now())


def test_the_newest_version_counts(tmp_path: Path) -> None:
    assert versions.newest(STORAGE, str(tmp_path)) is None
    for number in (9, 10, 2):
        versions.keep(STORAGE, str(tmp_path), version(number))
    place(tmp_path / "notes.txt", "mine")
    assert versions.newest(STORAGE, str(tmp_path)) == version(10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0002.json", "0009.json", "0010.json", "notes.txt"]


def test_of_many_writers_of_a_version_one_wins_and_all_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        kept = list(threads.map(lambda n: versions.keep(STORAGE, str(tmp_path), version(1, f"by {n}")), range(40)))
    assert len({one.reason for one in kept}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["0001.json"]


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    place(tmp_path / "file", "")
    with pytest.raises(Fault, match="a schema cannot be kept in") as caught:
        versions.keep(STORAGE, str(tmp_path / "file"), version(1))
    assert caught.value.code == "SCHEMA006"


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("city", ["city"]),
        ("to.city", ["to", "city"]),
        ("items[].sku", ["items", "[]", "sku"]),
        ("m[][].`a.b`", ["m", "[]", "[]", "a.b"]),
        ("`it``s`.x", ["it`s", "x"]),
        ("the end", ["the end"]),
    ],
)
def test_paths_are_taken_apart_and_put_together(path: str, steps: list[str]) -> None:
    assert schemas.steps(path) == steps
    assert ".".join(map(schemas.step, steps)).replace(".`[]`", "[]") == path


def test_what_is_new_is_named_by_its_outermost_path() -> None:
    known = struct(id=LongType(), to=struct(city=StringType()), items=ArrayType(struct(n=LongType())))
    found = struct(
        ID=LongType(),
        to=struct(city=StringType(), zip=struct(a=LongType())),
        items=ArrayType(struct(n=LongType(), sku=StringType())),
        more=struct(x=LongType()),
    )
    new = schemas.new_paths(found, known)
    assert new == ["to.zip", "items[].sku", "more"]
    wider = schemas.widened(known, new, found)
    assert schemas.new_paths(found, wider) == []
    assert wider["to"].dataType == struct(city=StringType(), zip=struct(a=LongType()))
    assert schemas.widened(wider, ["To", "unheard_of"], found).names == [*wider.names, "unheard_of"]


def test_fields_that_differ_in_case_alone_become_one() -> None:
    twins = struct(a=ArrayType(struct(x=LongType(), X=StringType())))
    assert schemas.without_twins(twins) == struct(a=ArrayType(struct(x=LongType())))


@pytest.mark.parametrize(
    ("theirs", "ours", "fits"),
    [
        (IntegerType(), LongType(), True),
        (LongType(), IntegerType(), False),
        (IntegerType(), DoubleType(), True),
        (LongType(), DoubleType(), False),
        (LongType(), StringType(), False),
        (LongType(), DecimalType(20, 0), True),
        (LongType(), DecimalType(20, 2), False),
        (DecimalType(5, 2), DecimalType(7, 3), True),
        (DecimalType(5, 2), DecimalType(5, 3), False),
        (ArrayType(IntegerType()), ArrayType(LongType()), True),
        (LongType(), ArrayType(LongType()), False),
        (struct(a=LongType()), struct(a=LongType(), b=LongType()), True),
        (struct(a=LongType()), struct(a=StringType()), False),
        (struct(a=LongType()), LongType(), False),
    ],
    ids=str,
)
def test_types_that_can_be_read_as_others(theirs, ours, fits) -> None:
    assert (not list(schemas.unfit(struct(c=theirs), struct(c=ours)))) is fits


def log(tmp_path: Path, source: int, name: str, *entries: tuple[int, str]) -> None:
    lines = [json.dumps({"path": path, "timestamp": 1, "batchId": batch}) for batch, path in entries]
    place(tmp_path / f"sources/{source}/{name}", "\n".join(["v1", *lines]))


def test_the_files_of_a_batch_are_those_between_its_offsets_and_the_ones_before(tmp_path: Path) -> None:
    log(tmp_path, 0, "0", (0, "file:///data/in/a"))
    log(tmp_path, 0, "1", (1, "file:///data/in/b%20c"), (1, "file:///data/in/d"))
    log(tmp_path, 0, "2.compact", (0, "file:///data/in/a"), (1, "file:///data/in/d"), (2, "file:///data/in/e"))
    log(tmp_path, 1, "0", (0, "file:///data/other/x"))
    for batch, offsets in enumerate((['{"logOffset":0}', "-"], ['{"logOffset":0}', "-"], ['{"logOffset":2}', "9"])):
        place(tmp_path / f"offsets/{batch}", "\n".join(["v1", "{}", *offsets]))
    files = [pending.files_of(STORAGE, str(tmp_path), batch, "/data/in") for batch in range(4)]
    assert files[0] == ["file:///data/in/a"]
    assert files[1] == files[3] == []
    assert sorted(files[2]) == ["file:///data/in/b c", "file:///data/in/d", "file:///data/in/e"]
    assert pending.files_of(STORAGE, str(tmp_path), 0, "/data/elsewhere") == []


def test_a_sample_is_spread_over_all_files() -> None:
    assert sample(list("abcdefghi"), 3) == ["a", "e", "i"]
    assert sample(list("ab"), 3) == ["a", "b"]
    assert sample(list("abc"), 1) == ["a"]


def lines(*rows: tuple[str | None, ...]) -> pyarrow.RecordBatch:
    names = ["_c0", "_c1", "_penstock_corrupt", csv_headers.FILE, "day"]
    columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, names=names)


LAYOUT = csv_headers.Layout(2, ("name", "id"), ",", {"version": 1}, "mark:")


def test_values_get_their_names_from_the_first_line_of_their_file_across_batches() -> None:
    batches = [
        lines(("id", "name", None, "a", "7"), ("1", "x", None, "a", "7")),
        lines(("2", None, "2", "a", "7"), ("city", "id", None, "b", "8"), ("Oslo", "3", None, "b", "8")),
        lines(("Rome", "4", "Rome,4,5", "b", "8")),
    ]
    named = [row for batch in csv_headers.by_header(LAYOUT)(batches) for row in batch.to_pylist()]
    shown = [(row["_c1"], row["_c0"], row["day"], row[csv_headers.NAMES], row[csv_headers.VALUES]) for row in named]
    assert shown == [
        ("1", "x", "7", None, None),
        ("2", None, "7", None, None),
        ("3", None, "8", ["city"], ["Oslo"]),
        ("4", None, "8", ["city"], ["Rome"]),
    ]
    assert [row[csv_headers.TOO_LONG] for row in named] == [False, False, False, True]
    assert named[3][csv_headers.TEXT] == "Rome,4,5"


def test_a_header_that_is_wider_than_all_before_is_refused() -> None:
    with pytest.raises(ValueError, match=r'mark:\{"version": 1, "file": "a"\}'):
        list(csv_headers.by_header(LAYOUT)([lines(("id", "name", "id,name,city", "a", "7"))]))


def test_odd_headers_still_name_every_value() -> None:
    named = csv_headers.by_header(LAYOUT)([lines(("\ufeffid", "id", None, "a", "7"), ("1", "2", None, "a", "7"))])
    assert [row[csv_headers.NAMES] for batch in named for row in batch.to_pylist()] == [["id0", "id1"]]
    narrow = csv_headers.by_header(LAYOUT)([lines(("id", None, "id", "a", "7"), ("1", "2", None, "a", "7"))])
    (row,) = [row for batch in narrow for row in batch.to_pylist()]
    assert (row["_c1"], row[csv_headers.TOO_LONG], row[csv_headers.TEXT]) == ("1", True, "1,2")


@pytest.mark.parametrize(
    ("keys", "columns"),
    [
        ({"path": "/data/in"}, ["day", "hour"]),
        ({"path": "/data/in/day=*"}, ["hour"]),
        ({"path": "/data/in/{day=7}", "base_path": "/data/in"}, ["day", "hour"]),
        ({"path": "/data/in", "recursive_file_lookup": True}, []),
    ],
    ids=str,
)
def test_folders_below_the_path_give_columns(keys, columns) -> None:
    files = ["file:///data/in/day=7/hour=8/a=b.json", "/data/in/day=8/hour=9/c.json"]
    assert folder_columns(Files(format="text", **keys), files) == columns
