"""How much of the files that wait for a query it has taken: what a progress bar shows."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.notation.paths import has_glob, is_local, to_local
from penstock.pipeline.model import Pipeline
from penstock.sources.files import Files
from penstock.storage.storage import Storage, join

_TOO_MANY = 100_000
_COMPACT = ".compact"


class FilesTaken:
    """Counts the files in the logs of a checkpoint's file sources. An entry of a log is read once, however often."""

    def __init__(self, storage: Storage, checkpoint: str) -> None:
        self._storage, self._sources = storage, join(checkpoint, "sources")
        self._newest: dict[str, int] = {}
        """By log, the newest entry that was read."""
        self._count = 0

    def count(self) -> int:
        for source in self._storage.entries(self._sources):
            if source.path not in self._newest:
                self._newest[source.path] = self._begin(source.path)
            self._follow(source.path)
        return self._count

    def _begin(self, log: str) -> int:
        """The newest compacted entry repeats all before it."""
        names = [entry.name.removesuffix(_COMPACT) for entry in self._storage.entries(log) if _COMPACT in entry.name]
        newest = max((int(name) for name in names if name.isdigit()), default=-1)
        if newest >= 0:
            self._count += len(self._lines(join(log, f"{newest}{_COMPACT}")))
        return newest

    def _follow(self, log: str) -> None:
        while True:
            number = self._newest[log] + 1
            try:
                self._count += len(self._lines(join(log, str(number))))
            except OSError:
                try:
                    lines = self._lines(join(log, f"{number}{_COMPACT}"))
                except OSError:
                    return  # it is not written yet
                self._count += sum(json.loads(line)["batchId"] == number for line in lines)
            self._newest[log] = number

    def _lines(self, path: str) -> list[str]:
        return [line for line in self._storage.read_text(path).splitlines() if line.startswith("{")]


class Backlog:
    """Files that were there at the start, the ones read before included."""

    def __init__(self, files: int, taken: FilesTaken) -> None:
        self._taken, self._before = taken, taken.count()
        self._waiting = files - self._before

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(1.0, (self._taken.count() - self._before) / self._waiting) if self._waiting > 0 else 1.0


def backlog(pipeline: Pipeline, query: str, storage: Storage, checkpoint: str) -> Backlog | None:
    """None where it cannot be counted cheaply: another source than local files, a glob, or very many files."""
    if not is_local(checkpoint):
        return None
    total = 0
    for source in pipeline.sources_of(query):
        if source.spec.is_static:
            continue
        if not isinstance(source.spec, Files) or not is_local(source.spec.path) or has_glob(source.spec.path):
            return None
        total += count_files(to_local(source.spec.path))
        if total > _TOO_MANY:
            return None
    return Backlog(total, FilesTaken(storage, checkpoint)) if total else None


def count_files(folder: Path) -> int:
    hidden = (".", "_")
    return sum(1 for path in folder.rglob("*") if path.is_file() and not path.name.startswith(hidden))
