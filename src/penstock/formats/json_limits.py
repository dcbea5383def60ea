"""JSON that Spark's parser refuses although it is JSON: nested too deep, or with too long a text or number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_NO_LIMIT = str(2**31 - 1)
_NONE, _CORRUPT = "_penstock_none", "_penstock_corrupt"


def is_object(text: Column) -> Column:
    """Is it a JSON object? (`try_parse_json` takes 16 MB at most.)"""
    return _fields(text).isNotNull()


def beyond_limits(text: Column) -> Column:
    """Why Spark does not parse a text that is a JSON object; NULL where none of its limits is the reason."""
    from pyspark.sql.functions import concat, lit, when

    limit = (
        when(_fields(text, maxStringLen=_NO_LIMIT).isNotNull(), lit("holds a text of more than 20,000,000 characters"))
        .when(_fields(text, maxNumLen=_NO_LIMIT).isNotNull(), lit("holds a number of more than 1,000 digits"))
        .when(_is_whole(text, maxNestingDepth=_NO_LIMIT) & ~_is_whole(text), lit("is nested deeper than 1,000 levels"))
    )
    return concat(limit, lit(", which is more than Spark parses"))


def _fields(text: Column, **options: str) -> Column:
    from pyspark.sql.functions import from_json

    return from_json(text, "MAP<STRING, STRING>", options)


def _is_whole(text: Column, **options: str) -> Column:
    """Is it an object from its first bracket to its last? No value is read: to copy one has limits of its own."""
    from pyspark.sql.functions import from_json

    schema = f"{_NONE} STRING, {_CORRUPT} STRING"
    return from_json(text, schema, {"columnNameOfCorruptRecord": _CORRUPT, **options})[_CORRUPT].isNull()
