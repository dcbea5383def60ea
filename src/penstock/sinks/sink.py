"""What every sink has."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.spec import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Mode = Literal["append", "update", "complete"]
ALL_MODES: frozenset[Mode] = frozenset({"append", "update", "complete"})


class SinkSpec(Part):
    """Where the rows of one step go. A subclass states its guarantee and the output modes it takes.

    Alone in its query and native, a sink is started by `start`: Spark's own sink writes. Otherwise `write` gets each
    batch. A `Fault` raised by `probe`, `prepare` or `write` is told at the place where the sink is declared.
    """

    type: str
    batch_sql: str | None = Field(
        None, description="A SELECT over each batch, the table `batch`: what is written in place of the batch's rows."
    )

    modes: ClassVar[frozenset[Mode]] = ALL_MODES
    guarantee: ClassVar[Guarantee]
    ephemeral: ClassVar[bool] = False
    """Is its content gone with the process? Then each run begins anew, without a checkpoint to resume."""
    shares: ClassVar[bool] = True
    """Can other sinks be fed from the same query?"""
    has_ledger: ClassVar[bool] = False
    """Does `write` itself see to it that a batch is written once? Otherwise Penstock notes each batch that is done."""
    passes_over: ClassVar[bool] = False
    """Does Spark's own sink leave a batch that it has uncomputed, and with it the batch's state?"""

    plans_nothing: ClassVar[bool] = False
    """Does Spark's own sink only take rows, without queries of its own beside them?"""
    takes_async_progress: ClassVar[bool] = False
    """Can progress be written down beside the work? Spark allows it of Kafka's sink."""

    @property
    def connectors(self) -> tuple[str, ...]:
        """The connectors whose jars this sink needs."""
        return ()

    @property
    def session_choices(self) -> frozenset[str]:
        """Settings of the session that decide how it writes, as long as the user has not decided."""
        return frozenset()

    @property
    def promise(self) -> Guarantee:
        """What it promises as it is declared."""
        return self.guarantee

    def promise_with(self, interval: str | None) -> Guarantee:
        """What it promises where progress is written down only so often; None: before and after each batch."""
        return self.promise

    @property
    def takes(self) -> frozenset[Mode]:
        """The output modes that it takes as it is declared."""
        return self.modes

    @property
    def reads_once(self) -> bool:
        """Does `write` go through the rows only once? Otherwise the batch is kept while it is written."""
        return True

    @property
    def is_native(self) -> bool:
        """Does Spark's own sink write it, when it stands alone?"""
        return True

    @property
    def counts_rows(self) -> bool:
        """Does Spark's own sink tell how many rows it has written?"""
        return False

    def probe(self) -> None:
        """Raises Fault if what it writes to cannot be reached. Without Spark, and in seconds."""

    def prepare(self, rows: DataFrame) -> None:
        """Called once before the query starts, with its rows, to look at columns and to make tables. Raises Fault."""

    def encoded(self, rows: DataFrame) -> DataFrame:
        """The rows as `start` and `write` take them."""
        return rows

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        """Starts the query that feeds this sink alone. Mode, trigger, checkpoint and query name are set by now."""
        raise NotImplementedError

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes one batch; returns when it is safe. Called again with the same batch after a crash. Raises Fault."""
        raise NotImplementedError
