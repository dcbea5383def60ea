"""Lines of text from a TCP socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.sources.source import SourceCapabilities, SourceSpec
from penstock.spec import given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Socket(SourceSpec):
    """Lines of UTF-8 text from a TCP server, for learning. Replayable: no, a crash loses what was read.

    The driver connects; the rows have one column, `value`, and `timestamp` too when it is asked for.
    """

    type: Literal["socket"] = "socket"
    host: str = spark_option(..., "The server's address.")
    port: int = spark_option(..., "The server's port.", ge=1, le=65_535)
    include_timestamp: bool = spark_option(False, "Adds the time at which each line arrived.")
    num_partitions: int | None = spark_option(None, "Partitions of the rows; the default is Spark's parallelism.", gt=0)

    capabilities: ClassVar[SourceCapabilities] = SourceCapabilities(replayable=False)
    example: ClassVar[str] = "{type: socket, host: localhost, port: 9999}"

    def load(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.format("socket").options(**given_options(self)).load()
