"""Sums that Hadoop keeps beside files on a local disk: `.5.crc` beside `5`. One without its file blocks a start.

Spark writes each entry of a log under another name and renames it. Where `.5.crc` is there already, Hadoop refuses the
rename, and Spark takes that for a second query on the same checkpoint. It happens when somebody deletes an entry and
not its sum, or when a copy or a crash has left one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.storage.storage import Storage, join

_LOGS = ("offsets", "commits")


def remove(storage: Storage, checkpoint: str, sink_folders: Iterable[str] = ()) -> list[str]:
    """Removes the sums of entries that are not there, of a checkpoint and of file sinks' own logs; gives their paths.

    Safe while no query runs there: a sum says nothing without its file, and Spark writes both again. Raises OSError.
    """
    sources = [entry.path for entry in storage.entries(join(checkpoint, "sources")) if entry.is_folder]
    logs = [
        *(join(checkpoint, log) for log in _LOGS),
        *sources,
        *(join(one, "_spark_metadata") for one in sink_folders),
    ]
    return [path for log in logs for path in _remove_in(storage, log)]


def _remove_in(storage: Storage, log: str) -> list[str]:
    entries = storage.entries(log)
    names = {entry.name for entry in entries}
    orphans = [
        entry.path
        for entry in entries
        if (number := _summed(entry.name)) and number.split(".")[0].isdigit() and number not in names
    ]
    for path in orphans:
        storage.remove(path)
    return orphans


def _summed(name: str) -> str:
    """`.5.crc` → `5`, `.9.compact.crc` → `9.compact`; nothing for another file."""
    return name[1:-4] if name.startswith(".") and name.endswith(".crc") else ""
