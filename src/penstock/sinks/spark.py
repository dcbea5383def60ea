"""Any format that Spark can write a stream to."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.facts.stores import Store, folder_store
from penstock.formats.connector import connectors_for
from penstock.notation.paths import PathText
from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.spec import WithSparkOptions, given_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Spark(SinkSpec, WithSparkOptions):
    """Any format that Spark can write a stream to, with its own options. At-least-once, or better if it says so.

    Formats whose jars Penstock knows (`kafka`, `delta`, `iceberg`, `avro`) get them on demand.
    """

    type: Literal["spark"] = "spark"
    format: str = Field(description="The short name or class of a Spark data source.")
    connection: str | None = Field(None, description="A connection of `penstock.yaml`, whose options are added.")
    path: PathText | None = Field(None, description="Handed to the sink's `start`, where it writes to a path.")
    partition_by: tuple[str, ...] = Field((), description="Partition columns, where the format has them.")

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("at-least-once", "Spark replays a batch after a crash; the format decides the rest"),
        skips_batches=True,
    )
    example: ClassVar[str] = "{of: counts, type: spark, format: noop}"

    @property
    def connectors(self) -> tuple[str, ...]:
        return connectors_for(self.format)

    @property
    def stores(self) -> tuple[Store, ...]:
        return folder_store(self.path, self.format)

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        writer = writer.format(self.format).options(**given_options(self))
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        return writer.start(self.path) if self.path else writer.start()

    def write(self, rows: DataFrame, batch: Batch) -> None:
        writer = rows.write.mode("append").format(self.format).options(**given_options(self))
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(self.path)
