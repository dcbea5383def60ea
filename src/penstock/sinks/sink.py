"""What every sink has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.facts.stores import Store
from penstock.problems import Fault
from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.sinks.held import CANNOT_EMPTY, Holding, StorageFor
from penstock.spec import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Mode = Literal["append", "update", "complete"]
ALL_MODES: frozenset[Mode] = frozenset({"append", "update", "complete"})


@dataclass(frozen=True)
class SinkCapabilities:
    """What a sink can do. A sink states its guarantee; the other defaults are right for most."""

    guarantee: Guarantee
    output_modes: frozenset[Mode] = ALL_MODES
    native: bool = True
    """Does Spark have a sink for it, which writes when it is alone in its query?"""
    shares_query: bool = True
    """Can other sinks be fed from the same query?"""
    ephemeral: bool = False
    """Is its content gone with the process? Then each run starts from the beginning, without a checkpoint to resume."""
    has_ledger: bool = False
    """Does `write` itself make sure that a batch is written once? Otherwise Penstock notes each batch that is done."""
    single_pass: bool = True
    """Does `write` go through the rows only once? Otherwise the batch is kept while it is written."""
    skips_batches: bool = False
    """Does Spark's own sink not compute a batch that it has already? Then the batch's state is not computed either."""
    runs_queries: bool = True
    """May Spark's own sink run queries of its own beside taking the rows?"""
    counts_rows: bool = False
    """Does Spark's own sink report how many rows it has written?"""
    async_progress: bool = False
    """Can progress be written beside the work? Spark allows it for Kafka's sink."""


class SinkSpec(Part):
    """Where the rows of one step go.

    Alone in its query and native, a sink is started by `start`: Spark's own sink writes. Otherwise `write` gets each
    batch. A `Fault` raised by `probe`, `judge`, `prepare` or `write` is told at the place where the sink is declared.
    """

    type: str
    batch_sql: str | None = Field(
        None, description="A SELECT over each batch, the table `batch`: what is written in place of the batch's rows."
    )

    capabilities: ClassVar[SinkCapabilities]

    @property
    def declared_capabilities(self) -> SinkCapabilities:
        """What it can do with the keys that it has."""
        return self.capabilities

    @property
    def connectors(self) -> tuple[str, ...]:
        """The connectors whose jars this sink needs."""
        return ()

    @property
    def stores(self) -> tuple[Store, ...]:
        """What it writes, as far as its keys tell: it feeds the queries that read it."""
        return ()

    @property
    def session_choices(self) -> frozenset[str]:
        """Settings of the session that decide how it writes, as long as the user has not decided."""
        return frozenset()

    def guarantee_with(self, interval: str | None) -> Guarantee:
        """What it promises if progress is written only once in an interval; None: before and after each batch."""
        return self.declared_capabilities.guarantee

    def probe(self) -> None:
        """Raises Fault if what it writes to cannot be reached. Without Spark, and in seconds."""

    def judge(self, rows: DataFrame) -> None:
        """Raises Fault if rows of these columns cannot be written. Changes nothing, here or elsewhere.

        Called for the sinks of all queries before one of them is prepared: a run that is refused has changed nothing.
        """

    def held(self, query_id: str, sink: str, storage_for: StorageFor, spark: SparkSession | None) -> Holding | None:
        """What its place holds of a query now; None where nothing is noted there, or only Spark could tell.

        Raises Fault, OSError.
        """
        return None

    def empty(self, storage_for: StorageFor) -> None:
        """Removes all rows, for a checkpoint that begins again. Raises Fault, also where it cannot; OSError."""
        raise Fault(CANNOT_EMPTY, f"a sink of type `{self.type}` cannot be emptied by Penstock",
                    "remove its rows by hand, then run the same command with `--keep-output`")  # fmt: skip

    @property
    def empties(self) -> bool:
        """Can `empty` remove its rows?"""
        return type(self).empty is not SinkSpec.empty

    def prepare(self, rows: DataFrame) -> None:
        """Makes what must be there before the query starts, such as an empty table. Called after `judge`. Raises Fault.

        What changes a table that is there, such as a new column, waits for the first batch that needs it.
        """

    def make(self, rows: DataFrame) -> None:
        """Makes what it writes, without rows: another query reads it from its own start on. Raises Fault."""
        self.prepare(rows)

    def encoded(self, rows: DataFrame) -> DataFrame:
        """The rows as `start` and `write` take them."""
        return rows

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        """Starts the query that feeds this sink alone. Mode, trigger, checkpoint and query name are set by now."""
        raise NotImplementedError

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes one batch; returns when it is safe. Called again with the same batch after a crash. Raises Fault."""
        raise NotImplementedError
