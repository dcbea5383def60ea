"""The same number of rows in every batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.sources.source import SourceSpec
from penstock.spec import given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RateMicroBatch(SourceSpec):
    """Rows `timestamp, value`, the same number in every batch, however fast batches follow. Replayable: yes."""

    type: Literal["rate_micro_batch"] = "rate_micro_batch"
    rows_per_batch: int = spark_option(..., "Rows in each batch.", gt=0)
    num_partitions: int | None = spark_option(None, "Partitions of the rows; the default is Spark's parallelism.", gt=0)
    start_timestamp: int = spark_option(0, "Generated time of the first batch, in milliseconds since 1970.", ge=0)
    advance_millis_per_batch: int = spark_option(1_000, "Milliseconds of generated time from batch to batch.", ge=0)

    example: ClassVar[str] = "{type: rate_micro_batch, rows_per_batch: 1000, advance_millis_per_batch: 5000}"

    def load(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.format("rate-micro-batch").options(**given_options(self)).load()
