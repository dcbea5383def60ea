"""What every sink has."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.guarantees import Guarantee
from penstock.spec import Part

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Mode = Literal["append", "update", "complete"]
ALL_MODES: frozenset[Mode] = frozenset({"append", "update", "complete"})


class SinkSpec(Part):
    """Where the rows of one step go. A subclass states its guarantee and the output modes it takes."""

    type: str

    modes: ClassVar[frozenset[Mode]] = ALL_MODES
    guarantee: ClassVar[Guarantee]
    ephemeral: ClassVar[bool] = False
    """Is its content gone with the process? Then each run begins anew, without a checkpoint to resume."""

    @property
    def connectors(self) -> tuple[str, ...]:
        """The connectors whose jars this sink needs."""
        return ()

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        """Starts the query that feeds this sink. Mode, trigger, checkpoint and query name are set by now."""
        raise NotImplementedError
