"""Files that a batch names and that are gone before Spark lists them to read them.

A file source lists its folder and notes the new files as a batch. It lists these once more to read them, and passes
over those that are gone by then, whatever `ignoreMissingFiles` says: only a file that goes later, under a task, fails
the query. In between can be minutes: many files wait for their batch, or a batch is run again after a crash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.notation.paths import is_within
from penstock.pipeline.model import Source
from penstock.problems import Problem
from penstock.sources.files import Files
from penstock.sources.living import pending
from penstock.spark_internals import files_not_listed, sql_executions
from penstock.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FILES_READ = "number of files read"
_LOOKED_AT = 200


@dataclass(frozen=True)
class Vanished:
    """Files of a source that a batch should have read."""

    source: Source
    batch: int
    files: tuple[str, ...]

    @property
    def is_allowed(self) -> bool:
        """Does the source pass over files that are gone?"""
        return bool(getattr(self.source.spec, "ignore_missing_files", None))

    def problem(self, *, committed: bool) -> Problem:
        more = f" (and {len(self.files) - 1:,} more)" if len(self.files) > 1 else ""
        message = (
            f"`{self.files[0]}`{more} was deleted before batch {self.batch} could read it:"
            f" its rows are missing in what `{self.source.name}` feeds"
        )
        again = "under another name, since the batch is committed" if committed else "under the same name"
        fix = (
            f"put the file back {again}, and run again; or write `ignore_missing_files: true` in"
            f" `{self.source.name}`: the run then counts such files and does not stop"
        )
        return Problem("FILES012", message, fix, self.source.origin.at("path"))


class VanishedFiles:
    """Looks at each batch of a running query, once."""

    def __init__(
        self,
        streaming: StreamingQuery,
        session: SparkSession,
        storage: Storage,
        checkpoint: str,
        sources: Sequence[Source],
    ) -> None:
        self._streaming, self._session, self._storage, self._checkpoint = streaming, session, storage, checkpoint
        self._sources = [source for source in sources if isinstance(source.spec, Files)]
        self._seen: int | None = None

    def look(self, reported: Sequence[int]) -> Iterator[Vanished]:
        """What is gone of the batches since the last look; `reported` are those that Spark has reported as done.

        What Spark has listed for the newest batch is certain, and cheap to ask. A batch that was done between two
        looks is compared with the folder, and a file that is gone there with the count of files that Spark has read.
        """
        if not self._sources:
            return
        newest = files_not_listed(self._streaming, -1 if self._seen is None else self._seen)
        if newest is not None and newest[1]:
            yield from self._of_sources(newest[0], newest[1])
        for batch in reported:
            if (self._seen is None or batch > self._seen) and (newest is None or batch != newest[0]):
                yield from self._of_sources(batch, self._missing_now(batch))
        self._seen = max([*reported, *([newest[0]] if newest else []), -1 if self._seen is None else self._seen])

    def _of_sources(self, batch: int, files: Sequence[str]) -> Iterator[Vanished]:
        for source in self._sources:
            path = getattr(source.spec, "path", "")
            if gone := tuple(file for file in files if is_within(path, file)):
                yield Vanished(source, batch, gone)

    def _missing_now(self, batch: int) -> list[str]:
        paths = {str(getattr(source.spec, "path", "")) for source in self._sources}
        named = [file for path in paths for file in pending.files_of(self._storage, self._checkpoint, batch, path)]
        gone = [file for file in named if not self._storage.is_file(file)]
        if not gone:
            return []
        read = self._files_read(batch)
        return gone if read is None or read < len(named) else []

    def _files_read(self, batch: int) -> int | None:
        """How many files Spark has read in a batch, as its own page on SQL shows it; None if that is not known."""
        store = sql_executions(self._session)
        first = max(0, int(store.executionsCount()) - _LOOKED_AT)
        kept = store.executionsList(first, _LOOKED_AT)
        wanted = re.compile(rf"runId = {self._streaming.runId}\b.*batch = {batch}\b", re.DOTALL)
        for number in range(kept.size() - 1, -1, -1):
            execution = kept.apply(number)
            if not wanted.search(execution.description()):
                continue
            values = store.executionMetrics(execution.executionId())
            nodes = store.planGraph(execution.executionId()).allNodes()
            found = [
                values.get(metric.accumulatorId())
                for node in (nodes.apply(place) for place in range(nodes.size()))
                for metric in (node.metrics().apply(place) for place in range(node.metrics().size()))
                if metric.name() == _FILES_READ
            ]
            if told := [re.sub(r"\D", "", value.get().partition("\n")[0]) for value in found if value.isDefined()]:
                return sum(int(count or 0) for count in told)
        return None
