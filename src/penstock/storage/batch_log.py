"""Spark's logs of batches, such as `offsets` and `commits`: a folder with one file for each batch, named by number."""

from __future__ import annotations

from penstock.storage.storage import Storage


def batches(storage: Storage, folder: str) -> list[int]:
    """The batches in a log, in no order. A file that is being written has another name, and is left out."""
    return [int(entry.name) for entry in storage.entries(folder) if entry.name.isdigit()]


def newest_batch(storage: Storage, folder: str) -> int | None:
    """The newest batch in a log; None if it is empty."""
    return max(batches(storage, folder), default=None)
