"""Rows kept in the driver's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.query.guarantees import Guarantee
from penstock.sinks.sink import SinkCapabilities, SinkSpec

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Memory(SinkSpec):
    """Keeps all rows in the driver's memory, to be read back in Python. Promises nothing; gone with the process."""

    type: Literal["memory"] = "memory"

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("none", "memory is gone with the process"), ephemeral=True, shares_query=False
    )
    example: ClassVar[str] = "{of: counts, type: memory}"

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        # Spark names the in-memory table after the query.
        return writer.format("memory").queryName(name).start()
