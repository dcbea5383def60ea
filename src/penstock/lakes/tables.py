"""What Delta and Iceberg tables have in common: names, moments in their history, and snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from penstock import spark_internals
from penstock.notation.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PART = re.compile(r"`((?:[^`]|``)+)`|([\w-]+)")
QUERY_ID = "spark.sql.streaming.queryId"
BATCH = "spark.sql.streaming.epochId"
"""The properties by which Iceberg's own streaming sink knows the snapshots that it has made."""


def parts_of(table: str) -> tuple[str, ...]:
    """`lake.shop.orders` → its parts; a part in backquotes may hold dots. Raises ValueError."""
    parts, position = [], 0
    while True:
        found = _PART.match(table, position)
        if not found:
            raise ValueError(table)
        parts.append(found[1].replace("``", "`") if found[1] else found[2])
        position = found.end()
        if position == len(table):
            return tuple(parts)
        if table[position] != ".":
            raise ValueError(table)
        position += 1


def _checked_table(table: str) -> str:
    try:
        parts_of(table)
    except ValueError:
        raise PydanticCustomError(
            "table", "should name a table: `catalog.schema.table`, a part with strange characters in backquotes"
        ) from None
    return table


TableText = Annotated[str, AfterValidator(_checked_table)]
"""The name of a table in a spec."""


def full_name(spark: SparkSession, table: str) -> str:
    """The name with every part quoted. Without a schema it means a table, never a view of the same name."""
    parts = parts_of(table)
    if len(parts) == 1:
        parts = (spark.catalog.currentCatalog(), spark.catalog.currentDatabase(), *parts)
    return ".".join(map(quoted, parts))


def _checked_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise PydanticCustomError("moment", "should be a moment such as `2026-01-31T12:00:00Z`") from None
    return text


Moment = Annotated[str, AfterValidator(_checked_moment)]
"""A date and time in a spec, as ISO 8601 spells them; in UTC unless it says otherwise."""


def moment_to_milliseconds(text: str) -> int:
    """Milliseconds since 1970."""
    moment = datetime.fromisoformat(text)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@dataclass(frozen=True)
class TableSnapshot:
    """One state of an Iceberg table, and the batch that made it, if a stream did."""

    id: int
    milliseconds: int
    query_id: str | None
    batch: int | None


def snapshots(spark: SparkSession, table: str) -> Iterator[TableSnapshot]:
    """What an Iceberg table is made of, newest first, read anew. Expired ones are gone, rolled back ones left out."""
    # Through Java, for a query on the table `snapshots` takes thirty times as long, and this is done for each batch.
    loaded = spark_internals.iceberg_table(spark, table)
    found = loaded.currentSnapshot()
    while found is not None:
        summary = found.summary()
        batch = summary.get(BATCH)
        number = int(batch) if batch else None
        yield TableSnapshot(found.snapshotId(), found.timestampMillis(), summary.get(QUERY_ID), number)
        parent = found.parentId()
        found = None if parent is None else loaded.snapshot(parent)
