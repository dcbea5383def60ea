"""The statements that make and change Delta and Iceberg tables, and what rows must have to fit into one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.notation.sql_text import literal, quoted
from penstock.problems import Fault, did_you_mean
from penstock.sinks.upsert import DELETES, TableWrites, changes
from penstock.spark_internals import JavaError, java_message, thrown_by

_CODE = re.compile(r"^\[[A-Z0-9_.]+\] ")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType


def create(
    table: str, schema: StructType, provider: str, partition_by: Sequence[str], properties: Mapping[str, str]
) -> str:
    """Makes a table, unless there is one. `table` and `partition_by` are SQL; columns and properties are plain text."""
    columns = ", ".join(map(_column, schema.fields))
    partitioned = f" PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
    pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    with_properties = f" TBLPROPERTIES ({pairs})" if properties else ""
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {provider}{partitioned}{with_properties}"


def add_columns(table: str, fields: Sequence[StructField]) -> str:
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(map(_column, fields))})"


def merge(table: str, source: str, columns: Sequence[str], spec: TableWrites) -> str:
    """Takes the rows of `source`, made by `changes`, into a table. Keys compare null-safe; NULL is the oldest."""
    on = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in spec.keys)
    current = ""
    if spec.latest_by is not None:
        latest = quoted(spec.latest_by)
        current = f" AND (t.{latest} IS NULL OR s.{latest} >= t.{latest})"
    names = [quoted(name) for name in columns]
    updates = ", ".join(f"t.{name} = s.{name}" for name in names)
    inserts = f"({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    deleting = f"WHEN MATCHED AND s.{DELETES}{current} THEN DELETE " if spec.delete_when else ""
    return (
        f"MERGE INTO {table} AS t USING {source} AS s ON {on} {deleting}"
        f"WHEN MATCHED AND NOT s.{DELETES}{current} THEN UPDATE SET {updates} "
        f"WHEN NOT MATCHED AND NOT s.{DELETES} THEN INSERT {inserts}"
    )


def run_merge(rows: DataFrame, table: str, spec: TableWrites, settings: Mapping[str, str]) -> None:
    """Upserts a batch in one statement, under settings that are taken back after it. Raises Fault like `changes`."""
    spark, view = rows.sparkSession, f"penstock_{uuid4().hex}"
    changes(rows, spec).createOrReplaceTempView(view)
    try:
        with settings_for(spark, settings):
            spark.sql(merge(table, view, rows.columns, spec)).collect()
    finally:
        spark.catalog.dropTempView(view)


@contextmanager
def settings_for(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session, for what is done inside: left there, they would be taken for those of the next write."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def require_columns(rows: DataFrame, spec: TableWrites, partition_by: Sequence[str], code: str) -> None:
    """Raises Fault if the sink names a column that the rows do not have, or a condition that cannot be judged."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import BooleanType

    known = {name.lower() for name in rows.columns}
    named = (("keys", spec.keys), ("latest_by", filter(None, [spec.latest_by])), ("partition_by", partition_by))
    for key, names in named:
        for name in names:
            if name.lower() not in known:
                raise Fault(code, f"the rows have no column `{name}`{did_you_mean(name, rows.columns)}",
                            f"name a column of the rows in `{key}`", (key,))  # fmt: skip
    if spec.delete_when is None:
        return
    try:
        (judged,) = rows.selectExpr(spec.delete_when).schema.fields
    except AnalysisException as error:
        raise Fault(code, f"`delete_when` cannot be judged: {first_words(error)}",
                    "write a SQL condition on the columns of the rows", ("delete_when",)) from None  # fmt: skip
    if not isinstance(judged.dataType, BooleanType):
        raise Fault(code, f"`delete_when` gives {judged.dataType.simpleString()}, not true or false",
                    "write a SQL condition, such as `op = 'd'`", ("delete_when",))  # fmt: skip


def missing_columns(table: str, has: StructType, rows: StructType, code: str, *, may_add: bool) -> list[StructField]:
    """The columns that the table must get first. Raises Fault if the rows do not fit into the table."""
    known = {field.name.lower() for field in has.fields}
    new = [field for field in rows.fields if field.name.lower() not in known]
    if new and not may_add:
        name = new[0].name
        raise Fault(code, f"the table {table} has no column `{name}`{did_you_mean(name, has.names)}",
                    "leave the column out in the step, or let the table get it: `merge_schema: true`",
                    )  # fmt: skip
    given = {field.name.lower() for field in rows.fields}
    for field in has.fields:
        if not field.nullable and field.name.lower() not in given:
            raise Fault(code, f"the table {table} needs a value for `{field.name}`, which the rows do not have",
                        "add the column in the step")  # fmt: skip
    return new


@contextmanager
def misfits_as(code: str, table: str, look: Callable[[], object]) -> Iterator[None]:
    """Tells what is said against a write as a Fault. `look` compares the columns, and raises one that names a column.

    Columns are compared before a run and not before each batch: a table can lose one in between.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, JavaError) as error:
        try:
            look()
        except Fault as fault:
            raise fault from error
        except Exception:  # noqa: BLE001, S110 - what hinders the look must not hide the failure itself
            pass
        if not thrown_by(error)[0].is_a("org.apache.spark.sql.AnalysisException"):
            raise
        raise Fault(code, f"the rows do not fit into the table {table}: {first_words(error)}",
                    "cast or rename the column in the step, or change it in the table with `ALTER TABLE`"
                    ) from error  # fmt: skip


@contextmanager
def refusals_as(code: str, doing: str, fix: str) -> Iterator[None]:
    """Tells whatever is said against making, opening or changing a table as a Fault."""
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, JavaError) as error:  # a catalog's own errors come as Java raised them
        raise Fault(code, f"{doing}: {first_words(error)}", fix) from error


def first_words(error: Exception) -> str:
    """The first line of what Spark says, without its code."""
    said = java_message(error) or str(error)
    text = _CODE.sub("", said.strip())
    return (text.strip().splitlines() or [type(error).__name__])[0].partition(" SQLSTATE")[0].rstrip(".;")


def _column(field: StructField) -> str:
    return f"{quoted(field.name)} {_type(field.dataType)}"


def _type(data_type: DataType) -> str:
    """A type as DDL. Spark's own `simpleString` leaves the names inside of a struct unquoted."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(data_type, StructType):
        fields = (f"{quoted(field.name)}: {_type(field.dataType)}" for field in data_type.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{_type(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{_type(data_type.keyType)}, {_type(data_type.valueType)}>"
    return data_type.simpleString()
