"""How much of the files that wait for a query it has taken: what a progress bar shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.notation.paths import has_glob, is_local, to_local
from penstock.pipeline.model import Pipeline
from penstock.sources.files import Files
from penstock.storage.storage import Storage, join

_TOO_MANY = 100_000


@dataclass(frozen=True)
class Backlog:
    """Files that were there at the start, the ones read before included."""

    files: int
    taken_before: int

    def share(self, storage: Storage, checkpoint: str) -> float:
        """From 0 to 1."""
        waiting = self.files - self.taken_before
        return min(1.0, (files_taken(storage, checkpoint) - self.taken_before) / waiting) if waiting > 0 else 1.0


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
    return Backlog(total, files_taken(storage, checkpoint)) if total else None


def count_files(folder: Path) -> int:
    hidden = (".", "_")
    return sum(1 for path in folder.rglob("*") if path.is_file() and not path.name.startswith(hidden))


def files_taken(storage: Storage, checkpoint: str) -> int:
    """Files in the logs of a checkpoint's file sources; a compacted log repeats those before it."""
    taken: set[str] = set()
    for source in storage.entries(join(checkpoint, "sources")):
        for log in storage.entries(source.path):
            if log.name.split(".")[0].isdigit():
                taken.update(line for line in storage.read_text(log.path).splitlines() if line.startswith("{"))
    return len(taken)
