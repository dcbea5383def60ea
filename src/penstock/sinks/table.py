"""A table of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.facts.stores import Store, folder_store, table_store
from penstock.formats.connector import connectors_for
from penstock.notation.paths import PathText
from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.spec import WithSparkOptions, given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Table(SinkSpec, WithSparkOptions):
    """A table by name, made on the first start if it is not there. Promises what the table's format promises."""

    type: Literal["table"] = "table"
    table: str = Field(description="`table`, `schema.table` or `catalog.schema.table`.")
    format: str | None = Field(
        None, description="Format of the table; the catalog's own by default, which is `parquet` in Spark's."
    )
    partition_by: tuple[str, ...] = Field((), description="Partition columns of a table that is made.")
    path: PathText | None = spark_option(None, "Where a table that is made keeps its files.")

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("at-least-once", "the format of the table decides; this much is sure"), skips_batches=True
    )
    example: ClassVar[str] = "{of: counts, type: table, table: lake.shop.counts}"

    @property
    def connectors(self) -> tuple[str, ...]:
        return connectors_for(self.format) if self.format else ()

    @property
    def stores(self) -> tuple[Store, ...]:
        return (*table_store(self.table), *folder_store(self.path, self.format or ""))

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        if self.format:
            writer = writer.format(self.format)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        return writer.options(**given_options(self)).toTable(self.table)

    def make(self, rows: DataFrame) -> None:
        spark = rows.sparkSession
        if not spark.catalog.tableExists(self.table):
            writer = spark.createDataFrame([], rows.schema).write.options(**given_options(self))
            if self.format:
                writer = writer.format(self.format)
            if self.partition_by:
                writer = writer.partitionBy(*self.partition_by)
            writer.saveAsTable(self.table)

    def write(self, rows: DataFrame, batch: Batch) -> None:
        writer = rows.write.mode("append").options(**given_options(self))
        if self.format:
            writer = writer.format(self.format)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.saveAsTable(self.table)
