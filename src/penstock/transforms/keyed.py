"""What steps with state of their own share: rows grouped by a key, and columns written as DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from penstock.problems import Fault, did_you_mean
from penstock.spec import Name, Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class Keyed(Spec):
    """Which rows, and how they are grouped."""

    of: Name = Field(description="The source or step whose rows it gets.")
    key: tuple[Name, ...] = Field(
        description="The columns that the rows are grouped by. Each key has state of its own.", min_length=1
    )


def declared_columns(ddl: str, *keys: str) -> StructType:
    """The columns that a key's text declares as DDL. Raises Fault."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        found = StructType.fromDDL(ddl)
    except PySparkException as error:
        said = str(error).strip().splitlines()[0].rstrip(".")
        found = None
    if isinstance(found, StructType):
        return found
    why = said.partition("] ")[2] or said if found is None else f"it is one {found.simpleString().upper()}"
    fix = "write columns with their types: `card_id STRING, score DOUBLE`"
    raise Fault("PROCESS004", f"`{keys[-1]}` does not declare columns: {why}", fix, keys)


def require_columns(columns: tuple[str, ...], rows: DataFrame, of: str, *keys: str) -> None:
    """Raises Fault for a column that the rows do not have."""
    known = {column.lower() for column in rows.columns}
    for number, column in enumerate(columns):
        if column.lower() not in known:
            message = f"`{of}` has no column `{column}`{did_you_mean(column, rows.columns)}"
            place: tuple[str | int, ...] = (*keys, number) if keys[-1] == "key" else keys
            raise Fault("PROCESS003", message, f"use one of: {', '.join(rows.columns)}", place)
