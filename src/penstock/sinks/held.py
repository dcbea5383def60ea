"""What the place that a sink writes to holds of a query: its newest batch, and whether it is the same place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.problems import Fault
from penstock.storage.storage import Storage, join

StorageFor = Callable[[str], Storage | None]
"""How a path is reached; None where it cannot be."""
OWNER = "_penstock_sink"
"""Beside `_spark_metadata`: whose log that is. Readers pass over files whose names begin with `_`."""
CANNOT_EMPTY = "CHECKPOINT026"
_LOG, _DELTA_LOG = "_spark_metadata", "_delta_log"


@dataclass(frozen=True)
class Holding:
    """As it is now."""

    last_batch: int | None = None
    """The newest batch of the query that is in it; None if there is none, or if nothing notes it."""
    identity: str | None = None
    """Of the table: another one after it was dropped and made again. None where there is none, or no table."""
    is_there: bool = True
    owner: str | None = None
    """The query whose log the folder holds, where that is known."""


def held_by_folder(storage: Storage, path: str) -> Holding:
    """A folder of Spark's file sink. Raises OSError."""
    entries = {entry.name for entry in storage.entries(path)}
    names = [entry.name.removesuffix(".compact") for entry in storage.entries(join(path, _LOG))]
    newest = max((int(name) for name in names if name.isdigit()), default=None)
    owner = None
    if OWNER in entries:
        try:
            owner = str(json.loads(storage.read_text(join(path, OWNER)))["query_id"])
        except (ValueError, LookupError, TypeError):
            owner = None
    return Holding(newest, None, bool(entries), owner)


def claim_folder(storage: Storage, path: str, query_id: str) -> None:
    """Notes whose log the folder holds. Raises OSError."""
    storage.write_text(join(path, OWNER), json.dumps({"query_id": query_id}) + "\n")


def empty_folder(storage_for: StorageFor, path: str) -> None:
    """Removes all that is in a folder. Raises Fault, OSError."""
    storage = storage_for(path)
    if storage is None:
        raise Fault(CANNOT_EMPTY, f"`{path}` is not on this machine", "empty it by hand, then use `--keep-output`")
    # The log last: while it is there, no reader takes what is left of the rows for all of them.
    for entry in sorted(storage.entries(path), key=lambda entry: entry.name in (_LOG, _DELTA_LOG)):
        storage.delete(entry.path)


def held_by_delta(storage: Storage, path: str, query_id: str) -> Holding:
    """A Delta table at a path, from its log: without Spark. Raises OSError."""
    names = [entry.name for entry in storage.entries(join(path, _DELTA_LOG))]
    commits = sorted((name for name in names if name.endswith(".json") and name[:-5].isdigit()), reverse=True)
    if not commits:
        return Holding(is_there=False)
    batch: int | None = None
    identity: str | None = None
    # A checkpoint of Delta holds all that the commits before it say.
    older = [name for name in names if ".checkpoint." in name and name.endswith(".parquet")]
    summed_up = max((name.partition(".")[0] for name in older), default="")
    for name in commits:
        if name.partition(".")[0] <= summed_up:
            break
        for action in _actions(storage.read_text(join(path, _DELTA_LOG, name))):
            transaction, metadata = action.get("txn"), action.get("metaData")
            if transaction and transaction.get("appId") == query_id:
                batch = max(batch or 0, int(transaction["version"]))
            if metadata and identity is None:
                identity = str(metadata["id"])
        if batch is not None and identity is not None:
            return Holding(batch, identity)
    for part in (name for name in older if name.partition(".")[0] == summed_up):
        found = _in_checkpoint(storage.read_bytes(join(path, _DELTA_LOG, part)), query_id)
        batch = found.last_batch if batch is None else batch
        identity = identity or found.identity
    return Holding(batch, identity)


def _actions(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        # Most lines name files: they are long, and nothing in them is asked for.
        if line.startswith(('{"txn"', '{"metaData"')):
            yield json.loads(line)


def _in_checkpoint(content: bytes, query_id: str) -> Holding:
    """What Delta has taken over from commits that are gone."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return Holding()
    file = pq.ParquetFile(pa.BufferReader(content))
    known = [name for name in ("txn", "metaData") if name in file.schema_arrow.names]
    batch, identity = None, None
    for row in file.read(columns=known).to_pylist():
        if (transaction := row.get("txn")) and transaction["appId"] == query_id:
            batch = int(transaction["version"])
        if metadata := row.get("metaData"):
            identity = str(metadata["id"])
    return Holding(batch, identity)
