"""What became of the files of a query's batches: those that vanished, and lines that Spark dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.facts.failure import Failure
from penstock.pipeline.model import Source
from penstock.storage.storage import Storage
from penstock.supervise.dropped_lines import Dropped, DroppedLines
from penstock.supervise.vanished_files import Vanished, VanishedFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PassedOver = Vanished | Dropped


class InputFiles:
    """Looks at the files of each batch. It lives as long as the run, over all starts of the query.

    The query of a source's dead letters reads the same files as those of the data: its dropped lines are theirs.
    """

    def __init__(self, storage: Storage, checkpoint: str, sources: Sequence[Source], *, is_for_letters: bool) -> None:
        self._storage, self._checkpoint, self._sources = storage, checkpoint, sources
        self._lines = DroppedLines(storage, checkpoint, () if is_for_letters else sources)
        self._vanished: VanishedFiles | None = None
        self._committed: Callable[[], int] = lambda: -1
        self._known: set[tuple[str, int]] = set()
        self._new: list[PassedOver] = []

    def begin(self, streaming: StreamingQuery, session: SparkSession, committed: Callable[[], int]) -> None:
        """The query was started; `committed` gives the newest batch that is committed."""
        self._vanished = VanishedFiles(streaming, session, self._storage, self._checkpoint, self._sources)
        self._committed = committed

    def look(self, reported: Sequence[int], *, wait: bool) -> PassedOver | None:
        """What the query must stop for, if anything. With `wait` nothing of the reported batches is left for later."""
        for lost in self._vanished.look(reported) if self._vanished else ():
            if not lost.is_allowed:
                return lost
            if (lost.source.name, lost.batch) not in self._known:  # a batch that is run again counts once
                self._known.add((lost.source.name, lost.batch))
                self._new.append(lost)
        for dropped in self._lines.look(reported, wait=wait):
            self._new.append(dropped)
            if dropped.stops:
                return dropped
        return None

    def failure_of(self, lost: PassedOver) -> Failure:
        """Why the query had to stop. Asked once it has stopped: until then its batch may still be committed."""
        if isinstance(lost, Dropped):
            return Failure("bad_record", lost.problem, f"{lost.file} {lost.lines}", lost.batch)
        problem = lost.problem(committed=self._committed() >= lost.batch)
        return Failure("missing_file", problem, lost.files[0], lost.batch, lost.files)

    def new_passed_over(self) -> list[PassedOver]:
        """What was passed over since it was asked last."""
        new, self._new = self._new, []
        return new
