"""A table of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.facts.stores import Store, table_store
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

    @property
    def stores(self) -> tuple[Store, ...]:
        return table_store(self.table)

    def is_there(self, spark: SparkSession) -> bool:
        from pyspark.errors import AnalysisException

        try:
            return spark.catalog.tableExists(self.table)
        except AnalysisException:  # so it is when there is no such catalog
            return False

    def load(self, spark: SparkSession) -> DataFrame:
        return self.reader(spark).options(**given_options(self)).table(self.table)
