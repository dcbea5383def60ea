"""What every source has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.dead_letters.bad_records import Expectation, OnBadRecord
from penstock.facts.failure import Failure
from penstock.facts.stores import Store
from penstock.notation.durations import Duration
from penstock.query.watermark import Watermark
from penstock.sources.beginning import Beginning
from penstock.sources.lag_meter import LagMeter
from penstock.sources.not_yet_written import no_rows
from penstock.spec import Part, Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

Read = Literal["stream", "static"]


@dataclass(frozen=True)
class SourceCapabilities:
    """What a source can do. The defaults are right for most."""

    replayable: bool = True
    """Can the same rows be read again after a crash? Without it no sink can promise exactly-once."""
    stable_plan: bool = False
    """Does Spark plan its rows in the same way in each batch?"""
    rereads_records: bool = False
    """Can `reread` read a bad record again, from the topic, partition and offset where it was?"""
    checks_batches: bool = False
    """Must `before_batch` be called before each batch?"""
    refuses_batches: bool = False
    """May a task stop a batch because of what it reads? Then nothing of it may be written before all tasks end."""
    asks_service_for_columns: bool = False
    """Must a service be asked before Spark knows the columns of its rows?"""


@dataclass(frozen=True)
class Reread:
    """A bad record that was read again."""

    reason: str | None
    """Why it is bad; None if it can be decoded now."""
    raw: bytes | None
    schema_id: int | None = None
    """The id of its schema, if the registry did not have it when the query started."""


class SourceSpec(Part):
    """Where rows come from. A subclass says in its docstring whether it can be replayed."""

    type: str
    watermark: Watermark | None = Field(None, description="Lets Spark drop state, and rows that come too late.")

    expect: dict[str, Expectation] = Field(
        default_factory=dict, description="Conditions that rows should meet, by name; the count of failures is kept."
    )

    capabilities: ClassVar[SourceCapabilities] = SourceCapabilities()

    @property
    def declared_capabilities(self) -> SourceCapabilities:
        """What it can do with the keys that it has."""
        return self.capabilities

    @property
    def is_static(self) -> bool:
        return False

    @property
    def connectors(self) -> tuple[str, ...]:
        """The connectors whose jars this source needs."""
        return ()

    @property
    def arrival(self) -> str | None:
        """When a record came, as SQL over what `load` gives: the same whenever and by whichever query it is read."""
        return None

    @property
    def session_settings(self) -> dict[str, str]:
        """Spark settings that the query reading this source needs in its session."""
        return {}

    @property
    def stores(self) -> tuple[Store, ...]:
        """What it reads, as far as its keys tell: a query that writes there feeds it."""
        return ()

    def beginning(self, moment_ms: int | None) -> Beginning | None:
        """As if all had been read that is there now, or that came before a moment; None if it cannot be said.

        Raises Fault, OSError.
        """
        return None

    def keeping(self, folder: str) -> Self:
        """The same source, with what it keeps of its own in `folder`, unless it was told another place."""
        return self

    def probe(self) -> None:
        """Raises Fault if what it reads from cannot be reached. Without Spark, and in seconds."""

    def partitions_now(self) -> int | None:
        """How many tasks read it at once, asked now; None where it cannot tell. Raises Fault."""
        return None

    def lag_meter(self) -> LagMeter | None:
        """Counts what it has that a query has not committed; None where that is not cheap, or needs Spark."""
        return None

    def load(self, spark: SparkSession) -> DataFrame:
        """The rows, unbounded or static. Paths are absolute and references resolved by now.

        A source that decodes records adds the hidden column of `dead_letters.bad_records`, and never fails on one.
        """
        raise NotImplementedError

    def is_there(self, spark: SparkSession) -> bool:
        """Is what it reads made already? Asked only where a sink of the project makes it."""
        return True

    def rows_to_come(self, spark: SparkSession, columns: StructType, partition_by: tuple[str, ...]) -> DataFrame:
        """As `load` will give them once a sink has made what it reads, with these columns: no rows yet."""
        return no_rows(spark, columns, static=self.is_static)

    def load_whole(self, spark: SparkSession) -> DataFrame:
        """The same with all of the hidden column, as dead letters need it: `load` may leave out what costs time."""
        return self.load(spark)

    def load_timed(
        self, spark: SparkSession, timed: Callable[[DataFrame], DataFrame], *, whole: bool = False
    ) -> DataFrame:
        """As `load`, or `load_whole`, through `timed`: it gives back the records that it gets, as they came in.

        A source that is static, or whose records have no column `timestamp`, leaves it out.
        """
        return self.load_whole(spark) if whole else self.load(spark)

    @property
    def session_choices(self) -> frozenset[str]:
        """Settings of the session that decide how it reads, as long as the user has not decided."""
        return frozenset()

    def reread(self, spark: SparkSession, place: Mapping[str, Any]) -> Reread | None:
        """The record at a place, judged now; None if it is gone."""
        raise NotImplementedError

    def before_batch(self, spark: SparkSession, checkpoint: str, batch: int) -> None:
        """Called on the driver before anything of a batch is written. Raises Fault to refuse the batch."""

    def recover(self, failure: Failure, spark: SparkSession, checkpoint: str) -> bool:
        """Called when a query that reads it has failed: adapts to the cause, and says whether a new start helps.

        Raises Fault if it knows the cause and cannot adapt to it.
        """
        return False


class Decoded(Spec):
    """Records that may turn out not to be what they should."""

    on_bad_record: OnBadRecord = Field(
        "fail",
        description="A record that cannot be decoded: `fail` stops the query, `drop` leaves it out, `dead_letter` puts"
        " it aside with the reason.",
    )


class StaticOrStream(SourceSpec):
    """A source that can be read as a stream or, once, as a table to join with."""

    read: Read = Field("stream", description="`static` reads it once, as a table to join a stream with.")

    refresh: Literal["batch"] | Duration | None = Field(
        None,
        description="Static reads: how fresh the table is kept. `batch` reads it anew for every batch; a duration"
        " restarts the query that often. Files can only be refreshed by a restart.",
    )

    @model_validator(mode="after")
    def _only_static_reads_are_refreshed(self) -> Self:
        if self.refresh is not None and not self.is_static:
            raise PydanticCustomError("refresh", "`refresh` is for `read: static`; a stream is always fresh")
        return self

    @property
    def is_static(self) -> bool:
        return self.read == "static"

    def reader(self, spark: SparkSession) -> DataFrameReader | DataStreamReader:
        return spark.read if self.is_static else spark.readStream
