"""Any format that Spark can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.facts.stores import Store, folder_store
from penstock.formats.connector import connectors_for
from penstock.notation.paths import PathText
from penstock.sources.source import StaticOrStream
from penstock.spec import WithSparkOptions, given_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Spark(StaticOrStream, WithSparkOptions):
    """Any format that Spark can read, with its own options. Replayable: assumed; its documentation must say so.

    Formats whose jars Penstock knows (`kafka`, `delta`, `iceberg`, `avro`) get them on demand.
    """

    type: Literal["spark"] = "spark"
    format: str = Field(description="The short name or class of a Spark data source.")
    connection: str | None = Field(None, description="A connection of `penstock.yaml`, whose options are added.")
    path: PathText | None = Field(None, description="Handed to the source's `load`, where it reads from a path.")
    schema_: str | None = Field(
        None, alias="schema", description="Columns and types as DDL, where the source takes one."
    )

    example: ClassVar[str] = "{type: spark, format: rate, spark_options: {rowsPerSecond: 5}}"

    @property
    def connectors(self) -> tuple[str, ...]:
        return connectors_for(self.format)

    @property
    def stores(self) -> tuple[Store, ...]:
        return folder_store(self.path, self.format)

    def load(self, spark: SparkSession) -> DataFrame:
        reader = self.reader(spark).format(self.format).options(**given_options(self))
        if self.schema_:
            reader = reader.schema(self.schema_)
        return reader.load(self.path) if self.path else reader.load()
