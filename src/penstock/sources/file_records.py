"""Records of text files that cannot be decoded: found by Spark's own parser, judged by Penstock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.dead_letters.bad_records import HIDDEN, ORIGIN_SCHEMA
from penstock.formats import json_limits
from penstock.notation.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CORRUPT = "_penstock_corrupt"
"""The column that takes the text of a record that Spark cannot parse; it never leaves the source."""
DECODED_FORMATS = ("csv", "json")
"""Not XML: where records do not fit, Spark's parser may hand over the text around them as one more."""
PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


def parsing_options(format_type: str) -> dict[str, str]:
    """What makes Spark hand over a bad record in place of losing it."""
    # With pruning, CSV values that no step asks for are not parsed, and a query would judge records by its columns.
    return PERMISSIVE | ({"columnPruning": "false"} if format_type == "csv" else {})


def with_verdict(rows: DataFrame, format_type: str) -> DataFrame:
    """Rows read with the column CORRUPT → the same with the hidden column in its place."""
    from pyspark.sql.functions import col, when

    columns = [name for name in rows.columns if name != CORRUPT]
    text = col(CORRUPT)
    reason = when(text.isNotNull() | _asks_for(columns), _reason(text, columns, format_type))
    return rows.select(*map(column, columns), hidden(text, reason, col("_metadata.file_path")))


def _asks_for(columns: list[str]) -> Column:
    """Never true, but asks for every column.

    Spark parses only what a query asks for: the query of the data and that of its dead letters would find different
    records bad, and Spark refuses to read the corrupt ones alone. Whether a count is below nothing, its optimiser
    does not know.
    """
    from functools import reduce

    from pyspark.sql.functions import lit

    nulls = (column(name).isNull().cast("int") for name in columns)
    return reduce(lambda sum_, one: sum_ + one, nulls, lit(0)) < lit(0)


def _reason(text: Column, columns: list[str], format_type: str) -> Column:
    from pyspark.sql.functions import coalesce, concat, concat_ws, lit, try_parse_json, when

    missing = concat_ws(", ", *(when(column(name).isNull(), lit(f"`{name}`")) for name in columns))
    misfit = when(missing == "", lit("does not fit the schema")).otherwise(
        concat(lit("does not fit the schema; nothing was read for "), missing)
    )
    if format_type == "json":
        is_json = try_parse_json(text).isNotNull() | json_limits.is_object(text)
        return when(is_json, misfit).otherwise(coalesce(json_limits.beyond_limits(text), lit("is not JSON")))
    return misfit


def hidden(raw: Column, reason: Column, file: Column) -> Column:
    """The hidden column of `penstock.dead_letters.bad_records`, for a record that came from a file."""
    from pyspark.sql.functions import lit, struct

    fields = [part.split(" ", 1) for part in _fields(ORIGIN_SCHEMA)]
    origin = struct(*((file if name == "file" else lit(None).cast(type_)).alias(name) for name, type_ in fields))
    return struct(raw.cast("binary").alias("raw"), reason.alias("reason"), origin.alias("origin")).alias(HIDDEN)


def _fields(ddl: str) -> list[str]:
    """The columns of a DDL text, split at the commas that stand outside of brackets."""
    fields, depth = [""], 0
    for character in ddl:
        depth += (character == "<") - (character == ">")
        if character == "," and not depth:
            fields.append("")
        else:
            fields[-1] += character
    return [field.strip() for field in fields]


def column(name: str) -> Column:
    """A column whatever its name holds: a dot would mean a field inside of it."""
    from pyspark.sql.functions import col

    return col(quoted(name))
