"""A table of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.sources.source import StaticOrStream
from penstock.spec import WithSparkOptions, given_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Table(StaticOrStream, WithSparkOptions):
    """A table by name, in Spark's own catalog or one declared in `penstock.yaml`. Replayable: as its format is.

    As a stream it gives the rows added to the table; its format must be one that Spark can stream from.
    """

    type: Literal["table"] = "table"
    table: str = Field(description="`table`, `schema.table` or `catalog.schema.table`.")

    example: ClassVar[str] = "{type: table, table: lake.shop.orders}"

    def load(self, spark: SparkSession) -> DataFrame:
        return self.reader(spark).options(**given_options(self)).table(self.table)
