"""What every source has."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.spec import Part
from penstock.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

Read = Literal["stream", "static"]


class SourceSpec(Part):
    """Where rows come from. A subclass says in its docstring whether it can be replayed."""

    type: str
    watermark: Watermark | None = Field(None, description="Lets Spark drop state, and rows that come too late.")

    replayable: ClassVar[bool] = True
    """Can the same rows be read again after a crash? Without it no sink can promise exactly-once."""

    @property
    def is_static(self) -> bool:
        return False

    @property
    def connectors(self) -> tuple[str, ...]:
        """The connectors whose jars this source needs."""
        return ()

    @property
    def session_settings(self) -> dict[str, str]:
        """Spark settings that the query reading this source needs in its session."""
        return {}

    def load(self, spark: SparkSession) -> DataFrame:
        """The rows, unbounded or static. Paths are absolute and references resolved by now."""
        raise NotImplementedError


class StaticOrStream(SourceSpec):
    """A source that can be read as a stream or, once, as a table to join with."""

    read: Read = Field("stream", description="`static` reads it once, as a table to join a stream with.")

    @property
    def is_static(self) -> bool:
        return self.read == "static"

    def reader(self, spark: SparkSession) -> DataFrameReader | DataStreamReader:
        return spark.read if self.is_static else spark.readStream
