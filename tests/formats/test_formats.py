"""The contract of every format: its example loads, its keys are explained, and they are all that Spark has."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from penstock.formats.any import READ_FORMATS, WRITE_FORMATS, AnyReadFormat, AnyWriteFormat
from penstock.formats.format import ReadFormat, WriteFormat
from penstock.spec import given_options, spark_option_names
from tests.frames import frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format = type[ReadFormat] | type[WriteFormat]

ALL_FORMATS: tuple[Format, ...] = (*READ_FORMATS, *WRITE_FORMATS)
READ: TypeAdapter[Any] = TypeAdapter(AnyReadFormat)
WRITE: TypeAdapter[Any] = TypeAdapter(AnyWriteFormat)

each_format = pytest.mark.parametrize("fmt", ALL_FORMATS, ids=lambda fmt: fmt.__name__)


def load(fmt: Format, given: Any) -> Any:
    return (READ if issubclass(fmt, ReadFormat) else WRITE).validate_python(given)


def type_of(fmt: Format) -> str:
    return str(fmt.model_fields["type"].default)


def example_of(fmt: Format) -> dict[str, Any]:
    return dict(yaml.safe_load(fmt.example))


def test_formats_are_alphabetical_and_can_all_be_read_and_written() -> None:
    types = [type_of(fmt) for fmt in READ_FORMATS]
    assert types == sorted(types) == [type_of(fmt) for fmt in WRITE_FORMATS]


@each_format
def test_example_loads_and_comes_back_as_written(fmt: Format) -> None:
    loaded = load(fmt, example_of(fmt))
    assert type(loaded) is fmt
    assert loaded.given() == example_of(fmt)


@each_format
def test_every_key_is_explained(fmt: Format) -> None:
    assert fmt.__doc__
    unexplained = [name for name, field in fmt.model_fields.items() if name != "type" and not field.description]
    assert unexplained == []


@each_format
def test_every_option_that_can_be_left_out_says_what_spark_does_then(fmt: Format) -> None:
    fields = ((name, fmt.model_fields[name]) for name in spark_option_names(fmt))
    assert [
        name for name, field in fields if not field.is_required() and "Spark's default:" not in f"{field.description}"
    ] == []


@each_format
def test_unknown_key_is_refused(fmt: Format) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        load(fmt, example_of(fmt) | {"colour": "red"})


@each_format
def test_no_option_takes_a_list(fmt: Format) -> None:
    for name in spark_option_names(fmt):
        with pytest.raises(ValidationError, match=name):
            load(fmt, example_of(fmt) | {name: ["x"]})


@each_format
def test_option_repeated_in_spark_options_is_refused(fmt: Format) -> None:
    for name, option in spark_option_names(fmt).items():
        with pytest.raises(ValidationError, match=f"write `{name}` instead"):
            load(fmt, example_of(fmt) | {"spark_options": {option.upper(): "x"}})


@each_format
def test_bare_word_is_the_format_without_options(fmt: Format) -> None:
    if fmt.model_fields.get("row_tag"):
        with pytest.raises(ValidationError, match="row_tag"):
            load(fmt, type_of(fmt))
    else:
        assert load(fmt, type_of(fmt)) == fmt(type=type_of(fmt))


def test_unknown_format_names_those_there_are() -> None:
    there_are = ", ".join(type_of(fmt) for fmt in READ_FORMATS)
    for adapter in (READ, WRITE):
        with pytest.raises(ValidationError, match=f"use one of: {there_are}"):
            adapter.validate_python("exel")


@pytest.mark.parametrize(
    "given",
    [
        {"type": "csv", "header": "perhaps"},
        {"type": "csv", "mode": "PERMISSIVE"},
        {"type": "csv", "quote": "''"},
        {"type": "csv", "line_sep": "\r\n\n"},
        {"type": "csv", "max_columns": 0},
        {"type": "csv", "unescaped_quote_handling": "shrug"},
        {"type": "json", "sampling_ratio": 0},
        {"type": "json", "sampling_ratio": 1.5},
        {"type": "json", "compression": "gzip"},
        {"type": "parquet", "int96_rebase_mode": "CORRECTED"},
        {"type": "xml", "row_tag": "<row>"},
    ],
    ids=str,
)
def test_value_that_spark_would_choke_on_is_refused_in_reading(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        READ.validate_python(given)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "csv", "extension": "tsv.gz"},
        {"type": "csv", "quote": ""},
        {"type": "csv", "schema": "id BIGINT"},
        {"type": "json", "compression": "zstd"},
        {"type": "orc", "compression": "gzip"},
        {"type": "parquet", "compression": "zlib"},
        {"type": "text", "line_sep": ""},
        {"type": "xml", "row_tag": "row", "declaration": "<?xml?>"},
        {"type": "xml", "row_tag": "row", "root_tag": ""},
    ],
    ids=str,
)
def test_value_that_spark_would_choke_on_is_refused_in_writing(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WRITE.validate_python(given)


def test_only_what_was_given_reaches_spark() -> None:
    loaded = READ.validate_python(
        {"type": "csv", "header": True, "quote": "", "max_columns": 7, "sep": None, "timestamp_ntz_format": "yyyy"}
    )
    assert given_options(loaded) == {"header": "true", "quote": "", "maxColumns": "7", "timestampNTZFormat": "yyyy"}


def test_rebase_modes_reach_spark_in_capitals() -> None:
    loaded = READ.validate_python({"type": "parquet", "datetime_rebase_mode": "legacy"})
    assert given_options(loaded) == {"datetimeRebaseMode": "LEGACY"}
    assert loaded.given() == {"type": "parquet", "datetime_rebase_mode": "legacy"}


ENGINE_OPTIONS = {
    "csv": "org.apache.spark.sql.catalyst.csv.CSVOptions",
    "json": "org.apache.spark.sql.catalyst.json.JSONOptions",
    "orc": "org.apache.spark.sql.execution.datasources.orc.OrcOptions",
    "parquet": "org.apache.spark.sql.execution.datasources.parquet.ParquetOptions",
    "text": "org.apache.spark.sql.execution.datasources.text.TextOptions",
    "xml": "org.apache.spark.sql.catalyst.xml.XmlOptions",
}

# Second names for an option that we have under its first one: we give each option one key only.
SECOND_NAMES = {
    "csv": {"charset", "codec", "delimiter"},  # encoding, compression, sep
    "json": {"charset"},  # encoding
    "orc": {"orc.compress"},  # compression
    "parquet": {"parquet.compression"},  # compression
    "text": set[str](),
    "xml": {"charset"},  # encoding
}


def engine_options(spark: SparkSession, type_: str) -> set[str]:
    scala_object = spark._jvm.java.lang.Class.forName(f"{ENGINE_OPTIONS[type_]}$").getField("MODULE$").get(None)
    return set(scala_object.getAllOptions().mkString(",").split(","))


@pytest.mark.spark
@pytest.mark.parametrize("type_", ENGINE_OPTIONS)
def test_options_are_those_of_the_engine(spark: SparkSession, type_: str) -> None:
    ours = {option for fmt in ALL_FORMATS if type_of(fmt) == type_ for option in spark_option_names(fmt).values()}
    assert ours == engine_options(spark, type_) - SECOND_NAMES[type_]


def write(rows: DataFrame, folder: Path, given: Any) -> list[Path]:
    fmt = WRITE.validate_python(given)
    rows.coalesce(1).write.format(fmt.type).options(**given_options(fmt)).save(str(folder))
    return sorted(folder.glob("part-*"))


def read(spark: SparkSession, path: Path, given: Any) -> list[tuple[Any, ...]]:
    fmt = READ.validate_python(given)
    reader = spark.read.format(fmt.type).options(**given_options(fmt))
    if fmt.schema_ is not None:
        reader = reader.schema(fmt.schema_)
    return [tuple(row) for row in reader.load(str(path)).collect()]


SCHEMA = "id BIGINT, name STRING, day DATE"
ROWS = [(1, "a;b", datetime.date(2026, 1, 31)), (2, None, None)]

ROUND_TRIPS = [
    pytest.param(
        {"type": "csv", "header": True, "sep": ";", "null_value": "-", "date_format": "dd.MM.yy", "extension": "tsv"},
        {
            "type": "csv",
            "header": True,
            "sep": ";",
            "null_value": "-",
            "date_format": "dd.MM.yy",
            "enforce_schema": False,
        },
        ".tsv",
        id="csv",
    ),
    pytest.param(
        {"type": "json", "date_format": "yyyyMMdd", "ignore_null_fields": False, "compression": "gzip"},
        {"type": "json", "date_format": "yyyyMMdd", "mode": "failfast"},
        ".json.gz",
        id="json",
    ),
    pytest.param({"type": "orc", "compression": "zlib"}, {"type": "orc", "merge_schema": True}, ".zlib.orc", id="orc"),
    pytest.param(
        {"type": "parquet", "compression": "zstd"},
        {"type": "parquet", "merge_schema": True, "datetime_rebase_mode": "exception"},
        ".zstd.parquet",
        id="parquet",
    ),
    pytest.param(
        {
            "type": "xml",
            "row_tag": "row",
            "root_tag": "rows",
            "date_format": "d MMM yyyy",
            "locale": "de",
            "indent": "",
        },
        {"type": "xml", "row_tag": "row", "date_format": "d MMM yyyy", "locale": "de", "mode": "failfast"},
        ".xml",
        id="xml",
    ),
]


@pytest.mark.spark
@pytest.mark.parametrize(("written", "read_back", "ending"), ROUND_TRIPS)
def test_rows_come_back(
    spark: SparkSession, tmp_path: Path, written: dict[str, Any], read_back: dict[str, Any], ending: str
) -> None:
    files = write(frame(spark, ROWS, SCHEMA), tmp_path / "out", written)
    assert [file.name.endswith(ending) for file in files] == [True]
    assert sorted(read(spark, tmp_path / "out", read_back | {"schema": SCHEMA})) == ROWS


@pytest.mark.spark
def test_lines_come_back_without_a_schema(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark, [("a",), ("b",)], "value STRING")
    write(rows, tmp_path / "out", {"type": "text", "line_sep": "|", "compression": "bzip2"})
    assert read(spark, tmp_path / "out", {"type": "text", "line_sep": "|"}) == [("a",), ("b",)]
    assert read(spark, tmp_path / "out", {"type": "text", "whole_text": True}) == [("a|b|",)]


@pytest.mark.spark
def test_malformed_record_is_kept_beside_the_good_ones(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"id": 1}\n{"id": 007}\nnope\n')
    given = {"type": "json", "schema": "id INT, bad STRING", "column_name_of_corrupt_record": "bad"}
    assert read(spark, tmp_path / "in.json", given) == [(1, None), (None, '{"id": 007}'), (None, "nope")]
    lenient = given | {"allow_numeric_leading_zeros": True, "mode": "dropmalformed"}
    assert read(spark, tmp_path / "in.json", lenient) == [(1, None), (7, None)]


@pytest.mark.spark
def test_csv_takes_columns_by_position(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("name,id\nx,1\n")
    given = {"type": "csv", "header": True, "schema": "id STRING, name STRING"}
    assert read(spark, tmp_path / "in.csv", given) == [("x", "1")]
    with pytest.raises(Exception, match="CSV header does not conform to the schema"):
        read(spark, tmp_path / "in.csv", given | {"enforce_schema": False})


@pytest.mark.spark
def test_old_dates_of_other_tools_are_rebased(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"day": [datetime.date(1000, 1, 1)]}), tmp_path / "old.parquet")
    given = {"type": "parquet", "schema": "day DATE"}
    assert read(spark, tmp_path / "old.parquet", given | {"datetime_rebase_mode": "corrected"}) == [
        (datetime.date(1000, 1, 1),)
    ]
    assert read(spark, tmp_path / "old.parquet", given | {"datetime_rebase_mode": "legacy"}) == [
        (datetime.date(999, 12, 27),)
    ]
