"""Spark's types in PostgreSQL: what a new table gets, what an existing column takes, and how a value is spelled.

Every value travels as the text that PostgreSQL itself reads for the column's type: made by Spark in the JVM, checked by
PostgreSQL as it arrives, the same for every type there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_CREATED = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
    "time": "time without time zone",
}
_FLOATS = frozenset({"float4", "float8", "numeric"})
_INTEGERS = frozenset({"int2", "int4", "int8"})
_TIMES = frozenset({"timestamp", "timestamptz"})
_TEXTS = frozenset({"text", "varchar", "bpchar", "citext", "name"})
_JSON = frozenset({"json", "jsonb"})
_TAKEN_FROM = {
    "tinyint": _INTEGERS | _FLOATS | _JSON,
    "smallint": _INTEGERS | _FLOATS | _JSON,
    "int": _INTEGERS | _FLOATS | _JSON,
    "bigint": _INTEGERS | _FLOATS | _JSON,
    "float": _FLOATS,
    "double": _FLOATS,
    "decimal": _FLOATS | _JSON,
    "boolean": frozenset({"bool"}) | _JSON,
    "binary": frozenset({"bytea"}),
    "date": _TIMES | {"date"},
    "timestamp": _TIMES,
    "timestamp_ntz": _TIMES,
    "time": frozenset({"time"}),
}
_NOT_FROM_STRING = _INTEGERS | _FLOATS | _TIMES | {"bool", "bytea", "date"}
"""A string there is most often a forgotten cast. Any other type, such as `uuid` or `inet`, has no type in Spark."""
_NESTED = ("struct", "map", "variant")
NO_EQUALITY = frozenset({"json", "xml", "point", "polygon"})
"""Types whose values PostgreSQL cannot compare, so that no key can have them."""


def created_type(spark_type: DataType) -> str | None:
    """The type of a column that is made for values of a Spark type; None if there is none."""
    name = _word(spark_type)
    if name == "decimal":
        return f"numeric({spark_type.precision}, {spark_type.scale})"  # type: ignore[attr-defined]
    if name == "array":
        element = created_type(spark_type.elementType)  # type: ignore[attr-defined]
        if element == "jsonb" or element is None:
            return element
        return element if element.endswith("[]") else f"{element}[]"
    return "jsonb" if name in _NESTED else _CREATED.get(name)


def is_taken(spark_type: DataType, postgres: str) -> bool:
    """Does a column take values of a Spark type? Its type is named as in `pg_type`, an array's with `_` before it."""
    name = _word(spark_type)
    if name == "void":
        return True
    if name == "array" and postgres.startswith("_"):
        inner = spark_type.elementType  # type: ignore[attr-defined]
        # PostgreSQL has one type for arrays of any depth.
        return is_taken(inner, postgres if _word(inner) == "array" else postgres[1:])
    if name in ("array", *_NESTED):
        return postgres in _JSON | _TEXTS
    if name == "string":
        return postgres not in _NOT_FROM_STRING and not postgres.startswith("_")
    taken = _TAKEN_FROM.get(name, frozenset())
    if name == "decimal" and spark_type.scale == 0:  # type: ignore[attr-defined]
        taken |= _INTEGERS
    return postgres in taken or (postgres in _TEXTS and bool(taken) and name != "binary")


def spelled(value: Column, spark_type: DataType, postgres: str) -> Column:
    """The value as the text that PostgreSQL reads for a column of that type; NULL stays NULL."""
    from pyspark.sql import functions as f

    name = _word(spark_type)
    if name == "array" and postgres.startswith("_"):
        return _array(value, spark_type, postgres)
    if name in ("array", *_NESTED):
        return f.to_json(value, {"ignoreNullFields": "false"})
    if name == "binary":
        return f.concat(f.lit("\\x"), f.hex(value))
    if postgres == "timestamptz" and name in ("date", "timestamp_ntz"):
        value, name = value.cast("timestamp"), "timestamp"  # in Spark's time zone, not in the server's
    if name == "timestamp" and postgres == "timestamptz":
        # With the offset, so that the hour that a clock repeats in autumn is not ambiguous; with the era, or a year
        # before Christ would lose its sign.
        return f.date_format(value, "yyyy-MM-dd HH:mm:ss.SSSSSSXXXXX G")
    return value.cast("string")


def _array(value: Column, spark_type: DataType, postgres: str) -> Column:
    from pyspark.sql import functions as f

    inner = spark_type.elementType  # type: ignore[attr-defined]
    nested = _word(inner) == "array"

    def item(element: Column) -> Column:
        if nested:
            return _array(element, inner, postgres)
        text = spelled(element, inner, postgres[1:])
        escaped = f.replace(f.replace(text, f.lit("\\"), f.lit("\\\\")), f.lit('"'), f.lit('\\"'))
        return f.concat(f.lit('"'), escaped, f.lit('"'))

    items = f.transform(value, lambda element: f.coalesce(item(element), f.lit("NULL")))
    return f.concat(f.lit("{"), f.array_join(items, ","), f.lit("}"))


def _word(spark_type: DataType) -> str:
    """`decimal` for `decimal(10,2)`, `string` for `string collate UTF8_LCASE`."""
    word = spark_type.simpleString().partition("(")[0].partition("<")[0].partition(" ")[0]
    return "string" if word in ("char", "varchar") else word
