"""CSV lines under a living schema: by name, from each file's own header, with every value as it is written.

Spark reads CSV by position, or into a VARIANT that takes `007` for 7. So lines are read by position as plain text, a
file by one task and from its start, and Python code gives each value the name that the file's first line has for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.facts.raised import sealed
from penstock.problems import Fault
from penstock.sources.file_records import CORRUPT, PERMISSIVE, column, hidden
from penstock.sources.living import csv_headers, schemas
from penstock.sources.living.csv_headers import FILE, NAMES, TEXT, TOO_LONG, VALUES, Batches
from penstock.sources.living.found import (
    Found,
    careful,
    folder_columns,
    reader,
    refusal_of_columns,
    reserved,
    step_of,
)
from penstock.spec import given_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.sources.files import Files
    from penstock.sources.living.versions import Version

_TYPED = "_penstock_typed"
# By position, so that the whole first line is there to be read as the header; multiLine keeps a file in one task.
_BY_POSITION = {"header": "false", "multiLine": "true", "enforceSchema": "true", "inferSchema": "false"}
READ_OPTIONS = frozenset(
    {"type", "schema_", "sep", "line_sep", "header", "escape", "char_to_escape_quote_escaping", "comment", "quote"}
    | {"null_value", "empty_value", "ignore_leading_white_space", "ignore_trailing_white_space", "encoding"}
    | {"infer_schema", "multi_line", "max_columns", "max_chars_per_column", "unescaped_quote_handling"}
    | {"input_buffer_size", "date_format", "timestamp_format", "sampling_ratio", "prefer_date", "spark_options"}
)
"""The keys of the format that are heeded; the others are refused, for values are typed by Penstock here."""


def rows(source: Files, spark: SparkSession, version: Version) -> DataFrame:
    """The stream of a folder's lines in the columns of a version."""
    from pyspark.sql.functions import array, array_except, coalesce, col, lit

    schema = schemas.from_json(version.schema)
    lines = _lines(source, spark.readStream, source.path, source.options(), version.width)
    partitions = lines.columns[version.width + 2 :]
    own = [name for name in schema.names if name.lower() not in {name.lower() for name in partitions}]
    named = _named(lines, source, version, own, partitions)
    names = coalesce(col(NAMES), array().cast("array<string>"))
    if source.on_new_columns == "add":
        known = [lit(name.lower()) for name in (*own, *reserved(source, partitions))]
        named = named.where(refusal_of_columns(source, version, _unlike(names, array(*known)), col(FILE)))
    if source.on_new_columns == "fail":
        ignored = array(*map(lit, partitions)).cast("array<string>")
        named = named.where(refusal_of_columns(source, version, array_except(names, ignored), col(FILE)))
    return _shaped(named, source, schema, own, partitions)


def look(source: Files, spark: SparkSession, files: list[str], version: Version) -> Found:
    """What these files hold beyond a version."""
    schema = schemas.from_json(version.schema)
    headers = _headers(source, spark, files)
    partitions = folder_columns(source, files)
    taken = {name.lower() for name in (*schema.names, *reserved(source, partitions))}
    known = {*schema.names, *partitions}
    new: dict[str, str] = {}
    for names, there in headers.items():
        for name in names:
            if (name.lower() not in taken) if source.on_new_columns == "add" else (name not in known):
                new.setdefault(schemas.step(name), there[0])
    return Found(_types(source, spark, headers), new, max(map(len, headers), default=0))


def infer(source: Files, spark: SparkSession, files: list[str]) -> Found:
    headers = _headers(source, spark, files)
    return Found(_types(source, spark, headers), width=max(map(len, headers), default=0))


def require_plain(schema: StructType) -> None:
    """Raises Fault if a hint names a type that no text stands for."""
    from pyspark.sql.types import AtomicType

    for field in schema.fields:
        if not isinstance(field.dataType, AtomicType) or field.dataType.simpleString() == "binary":
            raise Fault(
                "SCHEMA001", f"CSV cannot hold `{field.name}` as {field.dataType.simpleString().upper()}",
                "hint at a plain type, or at STRING, and take the text apart in a step", ("schema_hints",),
            )  # fmt: skip


def _lines(source: Files, reading: Any, where: Any, options: dict[str, str], width: int) -> DataFrame:
    """Lines by position: as many values as `width`, the text of a line with more or fewer, the file, the folders."""
    from pyspark.sql.functions import col

    columns = ", ".join(f"_c{number} STRING" for number in range(width))
    parsing = given_options(source.format) | PERMISSIVE | _BY_POSITION | {"columnPruning": "false"}
    lines: DataFrame = (
        reading.format("csv").options(**options | parsing).schema(f"{columns}, {CORRUPT} STRING").load(where)
    )
    values = lines.columns[:width]
    return lines.select(
        *values, CORRUPT, col("_metadata.file_path").alias(FILE), *map(column, lines.columns[width + 1 :])
    )


def _named(lines: DataFrame, source: Files, version: Version, own: list[str], partitions: list[str]) -> DataFrame:
    from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

    text = StringType()
    out = StructType(
        [StructField(f"_c{number}", text) for number in range(len(own))]
        + [StructField(TEXT, text), StructField(FILE, text)]
        + [lines.schema[name] for name in partitions]
        + [StructField(NAMES, ArrayType(text)), StructField(VALUES, ArrayType(text))]
        + [StructField(TOO_LONG, BooleanType())]
    )
    told: dict[str, Any] = {"location": source.schema_location, "version": version.version, "columns": []}
    sep = getattr(source.format, "sep", None) or ","
    layout = csv_headers.Layout(version.width, tuple(own), sep, told, sealed("new-columns"))
    return lines.mapInArrow(_sent(csv_headers.by_header(layout)), out)


def _sent(code: Batches) -> Batches:
    """Code for Spark's workers, which may not have Penstock."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(csv_headers)  # type: ignore[no-untyped-call]
    return code


def _shaped(named: DataFrame, source: Files, schema: StructType, own: list[str], partitions: list[str]) -> DataFrame:
    from pyspark.sql.functions import (
        array_join,
        cardinality,
        coalesce,
        col,
        concat,
        create_map,
        lit,
        map_concat,
        map_filter,
        map_from_arrays,
        map_keys,
        to_json,
        transform_keys,
        when,
    )

    text_of = {name: col(f"_c{number}") for number, name in enumerate(own)}
    typed = {name: _typed(source, text_of[name], schema[name].dataType) for name in own}
    named = named.withColumns({f"{_TYPED}{number}": typed[name] for number, name in enumerate(own)})
    typed = {name: col(f"{_TYPED}{number}") for number, name in enumerate(own)}
    none = create_map().cast("map<string, string>")
    unfit = [one for name in own for one in (lit(schemas.step(name)), when(typed[name].isNull(), text_of[name]))]
    misfit = map_filter(create_map(*unfit), lambda _, value: value.isNotNull()) if own else none
    unknown = map_filter(
        coalesce(map_from_arrays(col(NAMES), col(VALUES)), none),
        lambda name, value: value.isNotNull() & (~name.isin(partitions) if partitions else lit(True)),
    )
    unknown = transform_keys(unknown, lambda name, _: step_of(name))
    reason = when(col(TOO_LONG), lit("has more values than its header has names"))
    columns = [typed[name].alias(name) for name in own] + [column(name) for name in partitions]
    # Spark hands over the text of lines that are too long or too short; a bad one of the right length is told by name.
    texts = create_map(*(one for name in own for one in (lit(name), text_of[name])))
    line = coalesce(col(TEXT), to_json(texts))
    if source.rescues:
        everything = map_concat(unknown, misfit, create_map(lit(schemas.FILE_KEY), col(FILE)))
        kept = when(cardinality(unknown) + cardinality(misfit) > 0, to_json(everything))
        columns.append(kept.alias(source.rescued_column))
    else:
        fields = array_join(map_keys(misfit), ", ")
        reason = reason.when(cardinality(misfit) > 0, concat(lit("does not fit the schema: "), fields))
    return named.select(*columns, hidden(when(reason.isNotNull(), line), reason, col(FILE)))


def _typed(source: Files, text: Column, type_: Any) -> Column:
    from pyspark.sql.functions import lit, try_to_timestamp
    from pyspark.sql.types import DateType, StringType, TimestampType

    date_format, timestamp_format = (getattr(source.format, key, None) for key in ("date_format", "timestamp_format"))
    if isinstance(type_, StringType):
        return text
    if isinstance(type_, TimestampType) and timestamp_format:
        return try_to_timestamp(text, lit(timestamp_format))
    if isinstance(type_, DateType) and date_format:
        return try_to_timestamp(text, lit(date_format)).cast("date")
    return text.try_cast(type_)


def _unlike(names: Column, known: Column) -> Column:
    """Names that do not differ from the known ones in case alone, as they stand in paths."""
    from pyspark.sql.functions import array_contains, filter, lower  # noqa: A004

    return filter(names, lambda name: ~array_contains(known, lower(name)))


def _headers(source: Files, spark: SparkSession, files: list[str]) -> dict[tuple[str, ...], list[str]]:
    """The headers of files, each with the files that have it. Empty files have none."""
    from pyspark.sql.functions import col

    # A schema of one column makes a bad record of every line with more, so that its text is there.
    lines = _lines(source, spark.read, files, {"__globPaths__": "false"}, 1).select("_c0", CORRUPT, col(FILE))
    firsts = lines.mapInArrow(_sent(csv_headers.first_lines), "line STRING, file STRING").collect()
    by_line: dict[str, list[str]] = {}
    for row in firsts:
        by_line.setdefault(row.line, []).append(row.file)
    return {_names(source, spark, line): sorted(there) for line, there in by_line.items()}


def _names(source: Files, spark: SparkSession, line: str) -> tuple[str, ...]:
    options = given_options(source.format) | {"header": "true"}
    for key in ("encoding", "lineSep", "inferSchema"):
        options.pop(key, None)
    session = careful(spark)
    text = session.sparkContext.parallelize([line], 1)
    return tuple(session.read.options(**options).csv(text).columns)  # type: ignore[arg-type] # it takes lines too


def _types(source: Files, spark: SparkSession, headers: dict[tuple[str, ...], list[str]]) -> StructType:
    """A type for each name: STRING, unless the format asks for types to be guessed."""
    from pyspark.sql.types import StringType, StructField, StructType

    if not getattr(source.format, "infer_schema", None):
        names = dict.fromkeys(name for header in headers for name in header)
        return StructType([StructField(name, StringType()) for name in names])
    session = careful(spark)
    return schemas.merged(
        reader(source, session).option("header", "true").option("inferSchema", "true").load(there).schema
        for there in headers.values()
    )
