"""How many files of a folder a query has not committed yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.facts.observed import Unread
from penstock.sources.lag_meter import Committed, json_of
from penstock.storage.storage import Storage, join

_TOO_MANY = 20_000
_LOG = "logOffset"
_HIDDEN = (".", "_")
_METADATA = "_spark_metadata"


class FilesLag:
    """Lists a local folder, and compares it with the log of files that Spark keeps in the checkpoint.

    None for a folder with very many files, or with the log of a file sink, which decides what its readers see.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: set[str] = set()
        self._read_until: dict[str, int] = {}

    def unread(self, committed: Committed) -> Unread | None:
        for number, offset in enumerate(committed.offsets):
            end = json_of(offset)
            if isinstance(end, dict) and set(end) == {_LOG}:
                self._read_log(committed.storage, join(committed.checkpoint, "sources", str(number)), int(end[_LOG]))
        count = 0
        for seen, path in enumerate(_files(self._folder)):
            if seen >= _TOO_MANY or path is None:
                return None
            count += path not in self._taken
        return Unread(count, "file")

    def _read_log(self, storage: Storage, log: str, until: int) -> None:
        """Takes in the entries that are new. A compacted one repeats all before it."""
        after = self._read_until.get(log, -1)
        if until <= after:
            return
        numbers = {entry.name: int(entry.name.partition(".")[0]) for entry in storage.entries(log)
                   if entry.name.removesuffix(".compact").isdigit()}  # fmt: skip
        for name, number in numbers.items():
            if after < number <= until:
                for line in storage.read_text(join(log, name)).splitlines():
                    if line.startswith("{"):
                        self._taken.add(unquote(urlsplit(json_of(line)["path"]).path))
        self._read_until[log] = until


def _files(folder: Path) -> Iterator[str | None]:
    """The files that Spark would list; None for a folder that a file sink has written."""
    for entry in os.scandir(folder):
        if entry.name == _METADATA:
            yield None
        elif not entry.name.startswith(_HIDDEN):
            if entry.is_dir():
                yield from _files(Path(entry.path))
            else:
                yield entry.path
