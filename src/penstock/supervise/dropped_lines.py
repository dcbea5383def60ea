"""Lines of CSV files that Spark drops as blank: found after each batch, in a thread, and counted as bad records."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from penstock.notation.counts import counted
from penstock.notation.paths import shown, to_local
from penstock.pipeline.model import Source
from penstock.problems import Problem
from penstock.sources.blank_lines import can_look, dropped_lines
from penstock.sources.files import Files
from penstock.sources.living import pending
from penstock.storage.storage import Storage

_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="dropped-lines")


@dataclass(frozen=True)
class Dropped:
    """Lines of one file that hold control characters only."""

    source: Source
    batch: int
    file: str
    lines: tuple[int, ...]

    @property
    def stops(self) -> bool:
        """Does `on_bad_record` ask to stop at a bad record?"""
        return getattr(self.source.spec, "on_bad_record", "fail") == "fail"

    @property
    def message(self) -> str:
        more = f" (and {counted(len(self.lines) - 1, 'line')} more)" if len(self.lines) > 1 else ""
        return (
            f"line {self.lines[0]} of `{self.file}`{more} holds only NULs or other control characters: Spark took it"
            f" for a blank line, and `{self.source.name}` gave no row for it"
        )

    @property
    def problem(self) -> Problem:
        fix = (
            "correct the line, and put it into the folder as a new file: the batch is committed; or write"
            f" `on_bad_record: drop` in `{self.source.name}`: the run then counts such lines and does not stop"
        )
        return Problem("FILES014", self.message, fix, self.source.origin.at("on_bad_record"))


class DroppedLines:
    """Looks at the files of each batch, once, beside the batches that follow."""

    def __init__(self, storage: Storage, checkpoint: str, sources: Sequence[Source]) -> None:
        self._storage, self._checkpoint = storage, checkpoint
        self._sources = [one for one in sources if isinstance(one.spec, Files) and can_look(one.spec)]
        self._batches: set[int] = set()
        self._looking: list[Future[list[Dropped]]] = []

    def look(self, reported: Sequence[int], *, wait: bool) -> Iterator[Dropped]:
        """What was found since the last look; with `wait`, in all batches that were reported so far."""
        if not self._sources:
            return
        for batch in reported:
            if batch not in self._batches:
                self._batches.add(batch)
                self._looking.append(_threads.submit(self._in_batch, batch))
        while self._looking and (wait or self._looking[0].done()):
            yield from self._looking.pop(0).result()

    def _in_batch(self, batch: int) -> list[Dropped]:
        found: list[Dropped] = []
        for source in self._sources:
            path, form = str(getattr(source.spec, "path", "")), getattr(source.spec, "format", None)
            for name in pending.files_of(self._storage, self._checkpoint, batch, path):
                file = to_local(name)
                with contextlib.suppress(OSError, EOFError):  # tidied up since, or damaged: Spark reports that
                    if lines := dropped_lines(file, getattr(form, "line_sep", None)):
                        found.append(Dropped(source, batch, shown(str(file)), tuple(lines)))
        return found
