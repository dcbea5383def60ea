"""Files in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.facts.stores import Store, folder_store
from penstock.formats.any import AnyWriteFormat
from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.paths import PathText
from penstock.query.guarantees import Guarantee
from penstock.sinks.held import Holding, StorageFor, empty_folder, held_by_folder
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.spec import given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Files(SinkSpec):
    """Files in a folder. Exactly-once for readers that honour Spark's log of the folder (`_spark_metadata`).

    Spark reads the folder that way by itself; a tool that lists files sees those of a failed attempt too.
    """

    type: Literal["files"] = "files"
    path: PathText = Field(description="The folder to write to; local, relative to the project, or a Hadoop URL.")
    format: AnyWriteFormat = Field(
        description="`parquet`, `orc`, `json`, `csv`, `xml` or `text`, with its own options."
    )
    partition_by: tuple[str, ...] = Field((), description="Columns that become `key=value` folders.")
    retention: Duration | None = spark_option(
        None, "Files of batches older than this leave the log, so that readers stop seeing them."
    )
    max_records_per_file: int | None = spark_option(None, "Starts a new file after so many rows.", gt=0)

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("exactly-once", "Spark's log of the folder names the files of each committed batch"),
        output_modes=frozenset({"append"}),
        shares_query=False,
        skips_batches=True,
    )
    example: ClassVar[str] = "{of: counts, type: files, path: out/counts, format: parquet, partition_by: [day]}"

    @property
    def stores(self) -> tuple[Store, ...]:
        return folder_store(self.path)

    def held(self, query_id: str, sink: str, storage_for: StorageFor, spark: SparkSession | None) -> Holding | None:
        storage = storage_for(self.path)
        return held_by_folder(storage, self.path) if storage else None

    def empty(self, storage_for: StorageFor) -> None:
        empty_folder(storage_for, self.path)

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        options = given_options(self) | given_options(self.format)
        if self.retention is not None:
            options["retention"] = f"{to_milliseconds(self.retention)}ms"
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        return writer.format(self.format.type).options(**options).start(self.path)
