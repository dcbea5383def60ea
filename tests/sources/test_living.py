"""Folders whose files gain, lose and change columns, on the real engine: what each policy does, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest
from pyarrow import parquet

from penstock.dead_letters.bad_records import HIDDEN
from penstock.facts.failure import Failure
from penstock.problems import Fault
from penstock.sources import Files
from penstock.sources.living.found import NewColumns
from tests.conftest import place
from tests.failures import of_error, of_query
from tests.grids import grid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FORMATS = {
    "csv": {"type": "csv", "header": True, "infer_schema": True},
    "json": {"type": "json"},
    "parquet": {"type": "parquet"},
}
each_format = pytest.mark.parametrize("kind", FORMATS)


@dataclass
class Folder:
    """A folder, the query that reads it, and what has come out; restarted as a supervisor would."""

    spark: SparkSession
    root: Path
    source: Files
    restarts: int = 0
    bad: list[Any] = field(default_factory=list)

    def put(self, name: str, *rows: dict[str, Any]) -> None:
        put_rows(self.source.format.type, self.root / "in" / name, rows)

    def run(self, shape: Callable[[DataFrame], DataFrame] = lambda rows: rows) -> Folder:
        """Takes all that is there. Raises Fault when a source does."""
        for _ in range(6):
            failure = self.run_once(shape)
            if failure is None:
                return self
            if not self.source.recover(failure, self.spark, str(self.root / "checkpoint")):
                raise AssertionError(failure.problem.message)
            self.restarts += 1
        raise AssertionError("a restart loop")

    def run_once(self, shape: Callable[[DataFrame], DataFrame] = lambda rows: rows) -> Failure | None:
        checkpoint, raised = str(self.root / "checkpoint"), list[Exception]()

        def write(rows: DataFrame, batch: int) -> None:
            try:
                written(rows, batch)
            except Exception as error:
                raised.append(error)
                raise

        def written(rows: DataFrame, batch: int) -> None:
            if self.source.declared_capabilities.checks_batches:
                self.source.before_batch(self.spark, checkpoint, batch)
            if HIDDEN in rows.columns:
                self.bad += rows.where(f"{HIDDEN}.reason IS NOT NULL").select(f"{HIDDEN}.*").collect()
                rows = rows.where(f"{HIDDEN}.reason IS NULL").drop(HIDDEN)
            rows.write.mode("overwrite").parquet(str(self.root / "out" / f"batch={batch}"))

        writer = shape(self.source.load(self.spark)).writeStream.option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).foreachBatch(write).start()
        try:
            query.awaitTermination()
        except Exception:  # noqa: BLE001 - as a supervisor gets to see it
            return of_error(raised[0]) if raised else of_query(query)
        return None

    def rows(self) -> list[dict[str, Any]]:
        """What is in the output, by id, without what is NULL."""
        found = self.spark.read.option("mergeSchema", "true").parquet(str(self.root / "out")).drop("batch")
        shown = [
            {key: value for key, value in row.asDict(recursive=True).items() if value is not None}
            for row in found.collect()
        ]
        for row in shown:
            if "_rescued" in row:
                row["_rescued"] = json.loads(row["_rescued"])
                row["_rescued"]["_file"] = row["_rescued"]["_file"].rsplit("/", 1)[-1]
        return sorted(shown, key=lambda row: row.get("id", 0))

    @property
    def versions(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted((self.root / "schemas").iterdir())]

    def columns(self, version: int = -1) -> list[str]:
        return [column["name"] for column in self.versions[version]["schema"]["fields"]]


def put_rows(kind: str, path: Path, rows: tuple[dict[str, Any], ...]) -> None:
    path = path.with_suffix(f".{kind}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(list(rows), _arrow(rows)), path)
    elif kind == "csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines = [",".join("" if row.get(name) is None else str(row[name]) for name in names) for row in rows]
        place(path, "\n".join([",".join(names), *lines]) + "\n")
    else:
        place(path, "".join(json.dumps(row) + "\n" for row in rows))


def _arrow(rows: tuple[dict[str, Any], ...]) -> pyarrow.Schema:
    columns = {name: value for row in rows for name, value in row.items()}
    return pyarrow.schema([(name, pyarrow.infer_type([value])) for name, value in columns.items()])


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Callable[..., Folder]:
    def made(kind: str, on_new_columns: str, format_: dict[str, Any] | None = None, **keys: Any) -> Folder:
        source = Files(
            path=str(tmp_path / "in"),
            format=FORMATS[kind] | (format_ or {}),
            on_new_columns=on_new_columns,
            schema_location=str(tmp_path / "schemas"),
            **keys,
        )
        (tmp_path / "in").mkdir(exist_ok=True)
        return Folder(spark, tmp_path, source)

    return made


@pytest.mark.covers("schema.living")
@each_format
def test_a_new_column_is_added_and_no_row_is_lost_or_repeated(folder, kind):
    it = folder(kind, "add")
    it.put("a", {"id": 1, "name": "x"}, {"id": 2, "name": "y"})
    it.run()
    it.put("b", {"id": 3, "name": "z"})
    it.put("c", {"id": 4, "name": "w", "city": "Oslo"}, {"id": 5, "name": "v", "city": "Rome"})
    it.put("d", {"id": 6, "name": "u", "age": 7})
    it.run()
    assert it.restarts == 1
    assert it.rows() == [
        {"id": 1, "name": "x"},
        {"id": 2, "name": "y"},
        {"id": 3, "name": "z"},
        {"id": 4, "name": "w", "city": "Oslo"},
        {"id": 5, "name": "v", "city": "Rome"},
        {"id": 6, "name": "u", "age": 7},
    ]
    assert sorted(it.columns(0)) == ["id", "name"]
    assert sorted(it.columns(1)) == ["age", "city", "id", "name"]
    assert it.versions[1]["version"] == 2
    assert "city" in it.versions[1]["reason"]


@each_format
def test_a_new_column_is_rescued(folder, kind):
    it = folder(kind, "rescue")
    it.put("a", {"id": 1, "name": "x"})
    it.run()
    it.put("b", {"id": 2, "name": "y", "city": "Oslo"}, {"id": 3, "name": "z"})
    it.run()
    it.put("c", {"id": 4, "age": 5, "name": "w", "city": "Rome"})
    it.run()
    assert it.rows() == [
        {"id": 1, "name": "x"},
        {"id": 2, "name": "y", "_rescued": {"city": "Oslo", "_file": f"b.{kind}"}},
        {"id": 3, "name": "z"},
        {
            "id": 4,
            "name": "w",
            "_rescued": {"age": "5" if kind == "csv" else 5, "city": "Rome", "_file": f"c.{kind}"},
        },
    ]
    assert all(
        sorted(column["name"] for column in version["schema"]["fields"]) == ["id", "name"] for version in it.versions
    )


@each_format
def test_a_new_column_stops_the_query(folder, kind):
    it = folder(kind, "fail")
    it.put("a", {"id": 1})
    it.run()
    it.put("b", {"id": 2, "city": "Oslo"})
    for _ in range(2):
        with pytest.raises(Fault, match=rf"new columns have come: `city`, in .*b\.{kind}") as caught:
            it.run()
        assert caught.value.code == "SCHEMA002"
    assert it.rows() == [{"id": 1}]


@each_format
def test_a_new_column_is_ignored(folder, kind):
    it = folder(kind, "ignore")
    it.put("a", {"id": 1, "name": "x"})
    it.run()
    it.put("b", {"city": "Oslo", "id": 2, "name": "y"})
    it.run()
    assert it.rows() == [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]


@grid("kind, policy", FORMATS, ["add", "rescue", "fail", "ignore"])
def test_a_lost_column_is_null(folder, kind, policy):
    it = folder(kind, policy)
    it.put("a", {"id": 1, "name": "x"})
    it.run()
    it.put("b", {"id": 2})
    it.put("c", {"name": "z", "id": 3})
    it.run()
    assert (it.rows(), it.restarts) == ([{"id": 1, "name": "x"}, {"id": 2}, {"id": 3, "name": "z"}], 0)


@grid("kind, policy", ["csv", "json"], ["add", "rescue"])
def test_a_value_of_another_type_is_rescued(folder, kind, policy):
    it = folder(kind, policy)
    it.put("a", {"id": 1, "n": 1})
    it.run()
    it.put("b", {"id": 2, "n": "two"}, {"id": 3, "n": 1.5}, {"id": 4, "n": 4})
    it.run()
    half = "1.5" if kind == "csv" else 1.5
    assert it.rows() == [
        {"id": 1, "n": 1},
        {"id": 2, "_rescued": {"n": "two", "_file": f"b.{kind}"}},
        {"id": 3, "_rescued": {"n": half, "_file": f"b.{kind}"}},
        {"id": 4, "n": 4},
    ]
    assert (it.restarts, len(it.versions), it.bad) == (0, 1, [])


@grid("kind, policy", ["csv", "json"], ["fail", "ignore"])
def test_a_value_of_another_type_makes_a_bad_record(folder, kind, policy):
    it = folder(kind, policy)
    it.put("a", {"id": 1, "n": 1})
    it.put("b", {"id": 2, "n": "two"}, {"id": 3, "n": 3})
    (it.root / "schemas").mkdir()
    it = folder(kind, policy, schema_hints="id BIGINT, n BIGINT")
    it.run()
    assert it.rows() == [{"id": 1, "n": 1}, {"id": 3, "n": 3}]
    (bad,) = it.bad
    assert bad.reason == "does not fit the schema: n"
    assert json.loads(bad.raw) == {"id": "2" if kind == "csv" else 2, "n": "two"}
    assert bad.origin.file.endswith(f"b.{kind}")


@pytest.mark.parametrize("policy", ["add", "rescue", "fail", "ignore"])
def test_a_parquet_column_of_another_type_stops_the_query_before_anything_is_written(folder, policy):
    it = folder("parquet", policy)
    it.put("a", {"id": 1, "n": 1})
    it.run()
    it.put("b", {"id": 2, "n": "two"})
    with pytest.raises(Fault, match=r"`n` is STRING in .*b\.parquet, where the schema has BIGINT") as caught:
        it.run()
    assert caught.value.code == "SCHEMA005"
    assert it.rows() == [{"id": 1, "n": 1}]


def test_a_hint_lets_narrower_and_wider_parquet_files_be_read_as_one(folder):
    it = folder("parquet", "add")
    for name, type_ in {"a": pyarrow.int32(), "b": pyarrow.int64()}.items():
        (it.root / "in").mkdir(exist_ok=True)
        parquet.write_table(pyarrow.table({"id": pyarrow.array([ord(name)], type_)}), it.root / f"in/{name}.parquet")
    with pytest.raises(Fault, match="`id` is BIGINT in"):
        it.run()
    it = folder("parquet", "add", schema_hints="id BIGINT")
    assert it.run().rows() == [{"id": 97}, {"id": 98}]


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_new_field_inside_a_struct_or_an_array_is_added_under_its_path(folder, kind):
    it = folder(kind, "add")
    it.put("a", {"id": 1, "to": {"city": "Oslo"}, "items": [{"n": 1}]})
    it.run()
    wider = {"id": 2, "to": {"city": "Rome", "zip": "00100"}, "items": [{"n": 2, "sku": "x"}, {"n": 3, "sku": "y"}]}
    it.put("b", wider)
    it.run()
    assert it.rows() == [{"id": 1, "to": {"city": "Oslo", "zip": None}, "items": [{"n": 1, "sku": None}]}, wider]
    assert it.restarts == 1
    assert sorted(it.versions[1]["reason"].removeprefix("new: ").split(", ")) == ["items[].sku", "to.zip"]


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_new_field_inside_a_struct_or_an_array_is_rescued_under_its_path(folder, kind):
    it = folder(kind, "rescue")
    it.put("a", {"id": 1, "to": {"city": "Oslo"}, "items": [{"n": 1}]})
    it.run()
    it.put("b", {"id": 2, "to": {"city": "Rome", "zip": "00100"}, "items": [{"n": 2, "sku": "x"}]})
    it.put("c", {"id": 3, "to": {"city": "Paris"}, "items": [{"n": 3}]})
    it.run()
    assert it.rows() == [
        {"id": 1, "to": {"city": "Oslo"}, "items": [{"n": 1}]},
        {
            "id": 2,
            "to": {"city": "Rome"},
            "items": [{"n": 2}],
            "_rescued": {"to.zip": "00100", "items[].sku": ["x"], "_file": f"b.{kind}"},
        },
        {"id": 3, "to": {"city": "Paris"}, "items": [{"n": 3}]},
    ]


def test_a_value_of_another_type_inside_a_struct_or_an_array_is_rescued(folder):
    it = folder("json", "rescue", schema_hints="id BIGINT, to STRUCT<n: BIGINT, at: TIMESTAMP>, list ARRAY<BIGINT>")
    it.put("a", {"id": 1, "to": {"n": "one", "at": "2026-01-01"}, "list": [1]}, {"id": 2, "to": 5, "list": [1, "x"]})
    it.put("b", {"id": 3, "to": {"n": 3, "at": "later"}}, {"id": 4, "to": None})
    for row in it.run().rows():
        row.pop("to", None)
        expected = {
            1: {"id": 1, "list": [1], "_rescued": {"to.n": "one", "_file": "a.json"}},
            2: {"id": 2, "_rescued": {"to": 5, "list": [1, "x"], "_file": "a.json"}},
            3: {"id": 3, "_rescued": {"to.at": "later", "_file": "b.json"}},
            4: {"id": 4},
        }
        assert row == expected[row["id"]]


@each_format
def test_names_with_dots_blanks_and_quotes_are_kept(folder, kind):
    it = folder(kind, "add")
    it.put("a", {"id": 1, "a.b": "x", "the end": "y"})
    it.run()
    it.put("b", {"id": 2, "a.b": "x", "c.d": "new", "it's `so`": "q"})
    it.run()
    assert it.rows() == [
        {"id": 1, "a.b": "x", "the end": "y"},
        {"id": 2, "a.b": "x", "c.d": "new", "it's `so`": "q"},
    ]
    it = folder(kind, "rescue")
    it.put("c", {"id": 3, "e.f": "new"})
    assert it.run().rows()[-1] == {"id": 3, "_rescued": {"`e.f`": "new", "_file": f"c.{kind}"}}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_name_that_differs_in_case_alone_is_rescued_and_never_added(folder, kind):
    it = folder(kind, "add")
    it.put("a", {"id": 1, "name": "x"})
    it.run()
    it.put("b", {"id": 2, "Name": "y"})
    it.run()
    assert it.rows()[1] == {"id": 2, "_rescued": {"Name": "y", "_file": f"b.{kind}"}}
    it.put("c", {"id": 3, "City": "Oslo", "city": "Rome"})
    it.run()
    assert it.restarts == 1
    assert len(it.rows()[2]) == 3
    assert len(it.versions) == 2


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_field_that_has_one_of_our_names_is_rescued(folder, kind):
    it = folder(kind, "add")
    it.put("a", {"id": 1})
    it.run()
    it.put("b", {"id": 2, "_rescued": "mine", "_penstock": "mine too", "_file": "f"})
    it.run()
    row = it.rows()[1]
    assert row == {
        "id": 2,
        "_file": "f",
        "_rescued": {"_rescued": "mine", "_penstock": "mine too", "_file": f"b.{kind}"},
    }


def test_fields_without_a_type_of_their_own_are_added_as_text_and_cause_no_loop(folder):
    it = folder("json", "add")
    it.put("a", {"id": 1})
    it.run()
    it.put("b", {"id": 2, "nothing": None, "empty": {}, "none": []})
    it.run()
    it.put("c", {"id": 3, "nothing": 5, "empty": {"x": 1}})
    it.run()
    assert it.restarts == 1
    assert it.rows()[2] == {"id": 3, "nothing": "5", "empty": '{"x":1}'}


def test_csv_values_are_kept_as_they_are_written_and_headers_may_be_in_any_order(folder):
    plain = {"infer_schema": False, "escape": '"'}
    it = folder("csv", "add", plain, schema_hints="n INT, d DECIMAL(6,2), t TIMESTAMP")
    place(it.root / "in/a.csv", 'id,zip,n,note\n1,00100,7,"a\nb"\n2,0.10,8,"say ""hi"", x"\n')
    place(it.root / "in/b.csv", "note,n,id,zip\n,1e9,3,TRUE\n")
    place(it.root / "in/c.csv", "id,d,t\n4,1.50,2026-01-01T10:00:00Z\n5,x,y\n")
    place(it.root / "in/empty.csv", "")
    place(it.root / "in/only.csv", "id,zip\n")
    rows = [{key: value if key == "_rescued" else str(value) for key, value in row.items()} for row in it.run().rows()]
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": "1", "zip": "00100", "n": "7", "note": "a\nb"},
        {"id": "2", "zip": "0.10", "n": "8", "note": 'say "hi", x'},
        {"id": "3", "zip": "TRUE", "_rescued": {"n": "1e9", "_file": "b.csv"}},
        {"id": "4", "d": "1.50", "t": "2026-01-01 10:00:00"},
        {"id": "5", "_rescued": {"d": "x", "t": "y", "_file": "c.csv"}},
    ]


def test_a_csv_file_wider_than_all_before_it_is_read_whole(folder):
    for policy in ("rescue", "ignore"):
        it = folder("csv", policy, schema_hints="id BIGINT")
        place(it.root / f"in/{policy}.csv", "id\n1\n")
        it.run()
        place(it.root / f"in/{policy}2.csv", "x,y,id\n7,8,2\n")
        it.run()
    assert {"id": 2, "_rescued": {"x": "7", "y": "8", "_file": "rescue2.csv"}} in it.rows()
    assert sum(row["id"] == 2 for row in it.rows()) == 2


def test_a_line_with_more_values_than_names_is_a_bad_record(folder):
    it = folder("csv", "add", schema_hints="id BIGINT, name STRING")
    place(it.root / "in/a.csv", "id,name\n1,a\n2,b,c\n3\n")
    place(it.root / "in/b.csv", "id\n4\n5,6\n")
    assert it.run().rows() == [{"id": 1, "name": "a"}, {"id": 3}, {"id": 4}]
    assert sorted(bad.raw.decode() for bad in it.bad) == ["2,b,c", "5,6"]
    assert {bad.reason for bad in it.bad} == {"has more values than its header has names"}


@pytest.mark.parametrize("format_", [{}, {"multi_line": True}, {"encoding": "UTF-8"}], ids=str)
def test_what_is_no_json_object_is_a_bad_record(folder, format_):
    it = folder("json", "add", format_, schema_hints="id BIGINT")
    for number, text in enumerate(['{"id": 1}', "{broken", '{"id": 2, "id": 3}', "5", '"text"']):
        place(it.root / f"in/{number}.json", text + "\n")
    assert it.run().rows() == [{"id": 1}]
    assert sorted(bad.raw.decode().strip() for bad in it.bad) == sorted(
        ['"text"', "5", '{"id": 2, "id": 3}', "{broken"]
    )
    assert {bad.reason for bad in it.bad} == {"is not a JSON object"}


def test_documents_over_several_lines_and_arrays_of_them_live_too(folder):
    it = folder("json", "add", {"multi_line": True})
    place(it.root / "in/a.json", '{\n"id": 1\n}')
    it.run()
    place(it.root / "in/b.json", '[{"id": 2},\n {"id": 3, "city": "Oslo"}]')
    it.run()
    assert it.rows() == [{"id": 1}, {"id": 2}, {"id": 3, "city": "Oslo"}]
    assert it.restarts == 1


@each_format
def test_columns_of_folders_stay_what_they_are(folder, kind):
    it = folder(kind, "add")
    it.put("day=7/a", {"id": 1, "name": "x"})
    it.run()
    it.put("day=8/b", {"id": 2, "name": "y", "city": "Oslo"})
    it.run()
    assert [(row["id"], row["day"]) for row in it.rows()] == [(1, 7), (2, 8)]
    assert sorted(it.columns()) == ["city", "id", "name"]


def test_hints_decide_types_and_name_columns_that_are_not_there_yet(folder):
    it = folder("json", "add", schema_hints="amount DECIMAL(10,2), at TIMESTAMP, later STRING")
    it.put("a", {"id": 1, "amount": 5, "at": "2026-01-01T00:00:00Z"})
    it.run()
    types = {column["name"]: column["type"] for column in it.versions[0]["schema"]["fields"]}
    assert types == {"amount": "decimal(10,2)", "at": "timestamp", "id": "long", "later": "string"}


def test_hints_alone_are_a_schema_for_an_empty_folder(folder):
    it = folder("json", "add", schema_hints="id BIGINT").run()
    it.put("a", {"id": 1, "x": "y"})
    it.run()
    assert (it.rows(), it.restarts) == ([{"id": 1, "x": "y"}], 1)
    assert it.versions[0]["reason"] == "the hints alone"


def test_changed_hints_make_a_version_once(folder):
    it = folder("json", "add")
    it.put("a", {"id": 1, "to": {"n": 1}})
    it.run()
    it = folder("json", "add", schema_hints="id STRING, to STRUCT<n: STRING>")
    it.put("b", {"id": 2, "to": {"n": 2, "m": 3}})
    it.run().run()
    assert [version["reason"] for version in it.versions][1:] == ["the hints have changed", "new: to.m"]


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    [
        ("json", {"schema_hints": "amount DECIMALS"}, "are not columns"),
        ("json", {"schema_hints": "amount"}, "are not columns"),
        ("csv", {"schema_hints": "to STRUCT<n: INT>"}, "CSV cannot hold `to` as STRUCT<N:INT>"),
        ("json", {}, "there is no file in .* to infer"),
    ],
)
def test_a_schema_that_cannot_be_made_is_told(folder, spark, kind, keys, said):
    with pytest.raises(Fault, match=said) as caught:
        folder(kind, "add", **keys).source.load(spark)
    assert caught.value.code == "SCHEMA001"


def test_two_queries_of_a_folder_agree(folder, spark):
    it = folder("json", "add")
    it.put("a", {"id": 1})
    first, second = it.source.load(spark), it.source.load(spark)
    assert first.schema == second.schema
    assert len(it.versions) == 1
    it.run()
    it.put("b", {"id": 2, "x": 1})
    other = Folder(spark, it.root / "other", it.source)
    it.run()
    assert other.source.load(spark).columns == ["id", "x", "_rescued", HIDDEN]


def test_a_query_that_was_refused_by_an_older_version_just_starts_anew(folder, spark):
    it = folder("json", "add")
    it.put("a", {"id": 1})
    it.run()
    it.put("b", {"id": 2, "x": 1})
    refused = it.run_once()
    assert refused is not None
    assert refused.columns is not None
    assert (refused.columns.location, refused.columns.version) == (str(it.root / "schemas"), 1)
    assert refused.columns.columns == ("x",)
    it.run()
    checkpoint = str(it.root / "checkpoint")
    assert it.source.recover(refused, spark, checkpoint)
    newer = replace(refused, columns=replace(refused.columns, version=2))
    with pytest.raises(Fault, match="none are in its 1 files") as caught:
        it.source.recover(newer, spark, checkpoint)
    assert caught.value.code == "SCHEMA003"
    other = replace(refused, columns=replace(refused.columns, location="elsewhere"))
    assert not it.source.recover(other, spark, checkpoint)
    assert not it.source.recover(replace(refused, kind="out_of_memory", columns=None), spark, checkpoint)


@pytest.mark.covers("recovery.dedup-changed")
def test_state_that_cannot_grow_ends_the_query_with_the_way_out(folder):
    it = folder("json", "add")
    it.put("a", {"id": 1})
    it.run(lambda rows: rows.drop(HIDDEN).dropDuplicates())
    it.put("b", {"id": 2, "x": 1})
    with pytest.raises(Fault, match="cannot take the new columns of schema version 2") as caught:
        it.run(lambda rows: rows.drop(HIDDEN).dropDuplicates())
    assert caught.value.code == "SCHEMA004"
    assert it.restarts == 1


def test_state_with_keys_of_its_own_takes_new_columns(folder):
    it = folder("json", "add")
    it.put("a", {"id": 1})
    it.run(lambda rows: rows.drop(HIDDEN).dropDuplicates(["id"]))
    it.put("b", {"id": 2, "x": 1}, {"id": 1, "x": 1})
    it.run(lambda rows: rows.drop(HIDDEN).dropDuplicates(["id"]))
    assert it.rows() == [{"id": 1}, {"id": 2, "x": 1}]


def test_a_parquet_query_is_judged_by_the_version_that_it_reads_by(folder, spark):
    it = folder("parquet", "add")
    it.put("a", {"id": 1})
    it.run()
    it.put("b", {"id": 2, "x": 1})
    behind = spark.newSession()
    it.source.load(behind)
    it.run()
    with pytest.raises(NewColumns, match="columns that schema version 1 lacks: x") as caught:
        it.source.before_batch(behind, str(it.root / "checkpoint"), 1)
    assert it.source.recover(of_error(caught.value), behind, str(it.root / "checkpoint"))
    it.source.before_batch(spark, str(it.root / "checkpoint"), 1)
    assert len(it.versions) == 2


@each_format
def test_batches_are_refused_one_by_one(folder, kind):
    it = folder(kind, "add", max_files_per_trigger=1)
    it.put("a", {"id": 1})
    it.run()
    for number in (2, 3):
        it.put(f"b{number}", {"id": number, f"c{number}": number})
    it.run()
    assert it.restarts == 2
    assert it.rows() == [{"id": 1}, {"id": 2, "c2": 2}, {"id": 3, "c3": 3}]


def test_names_of_files_are_no_patterns(folder):
    it = folder("json", "add")
    it.put("a [1]{b} 100%", {"id": 1})
    it.run()
    it.put("a [2]*", {"id": 2, "x": "y"})
    assert it.run().rows() == [{"id": 1}, {"id": 2, "x": "y"}]


def test_a_kept_schema_that_cannot_be_read_is_told(folder, spark):
    it = folder("json", "add")
    it.put("a", {"id": 1})
    it.run()
    (it.root / "schemas/0001.json").write_text("{half")
    with pytest.raises(Fault, match=r"0001\.json cannot be read") as caught:
        it.source.load(spark)
    assert caught.value.code == "SCHEMA006"
