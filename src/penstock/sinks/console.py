"""Rows printed in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.spec import given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Console(SinkSpec):
    """Prints each batch in the terminal, for looking. Promises nothing; every batch passes through the driver."""

    type: Literal["console"] = "console"
    num_rows: int = spark_option(20, "Rows printed of each batch.", gt=0)
    truncate: bool = spark_option(True, "Cuts long values.")

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(Guarantee("none", "the console is for looking"))
    example: ClassVar[str] = "{of: counts, type: console, num_rows: 10}"

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        return writer.format("console").options(**given_options(self)).start()

    def write(self, rows: DataFrame, batch: Batch) -> None:
        rows.write.format("console").options(**given_options(self)).mode("append").save()
