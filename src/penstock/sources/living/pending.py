"""Which files a batch is made of, from the logs in its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import unquote

from penstock.notation.paths import is_within
from penstock.storage.storage import Storage, join


def files_of(storage: Storage, checkpoint: str, batch: int, path: str) -> list[str]:
    """The files that the source of `path` brings to a batch."""
    until, after = _offsets(storage, checkpoint, batch), _offsets(storage, checkpoint, batch - 1)
    found: dict[str, None] = {}
    for source, end in until.items():
        for number, file in _log(storage, join(checkpoint, "sources", str(source)), after.get(source, -1), end):
            if after.get(source, -1) < number <= end and is_within(path, file):
                found[file] = None
    return list(found)


def _offsets(storage: Storage, checkpoint: str, batch: int) -> dict[int, int]:
    """For each file source of a query, how far its own log is read with a batch. The two count apart."""
    path = join(checkpoint, "offsets", str(batch))
    if batch < 0 or not storage.is_file(path):
        return {}
    lines = storage.read_text(path).splitlines()[2:]  # after a version, and what belongs to the whole query
    offsets: dict[int, int] = {}
    for number, line in enumerate(lines):
        try:
            offset = json.loads(line)
        except ValueError:
            continue  # a source that had nothing yet, or that tells its place in words of its own
        if isinstance(offset, dict) and "logOffset" in offset:
            offsets[number] = int(offset["logOffset"])
    return offsets


def _log(storage: Storage, folder: str, after: int, until: int) -> Iterator[tuple[int, str]]:
    # A compacted log repeats all that came before it, and Spark deletes those after a while.
    for entry in storage.entries(folder):
        number, _, kind = entry.name.partition(".")
        if not number.isdigit() or int(number) <= after or (int(number) > until and not kind):
            continue
        for line in storage.read_text(entry.path).splitlines():
            if line.startswith("{"):
                logged = json.loads(line)
                yield int(logged["batchId"]), unquote(logged["path"])
