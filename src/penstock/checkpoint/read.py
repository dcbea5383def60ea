"""Checkpoint files → facts. No JVM is needed where the storage is local."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import unquote

from penstock.checkpoint import folders, manifest
from penstock.checkpoint.manifest import Manifest
from penstock.facts.stored import CheckpointFacts, ReadFile
from penstock.notation.paths import is_local, to_local
from penstock.storage.batch_log import newest_batch
from penstock.storage.storage import Storage, join

_LAST_FILES = 200
"""How many of the last read files are compared with the disk: enough to see a writer that appends."""


def checkpoint(storage: Storage, query_folder: str, query: str) -> CheckpointFacts | None:
    """The newest generation of a query, or None when it never ran."""
    generations = folders.generations_in(storage, query_folder)
    if not generations:
        return None
    newest = generations[-1]
    born = read_manifest(storage, query_folder, newest)
    path = folders.generation_folder(query_folder, newest)
    return CheckpointFacts(
        query=query,
        generation=newest,
        path=path,
        id=born.id,
        spark_id=_spark_id(storage, path),
        settings=born.settings,
        partition_columns=born.partition_columns,
        last_offset=newest_batch(storage, join(path, "offsets")),
        last_commit=newest_batch(storage, join(path, "commits")),
        read_files=tuple(read_files(storage, path)),
        recorded=born.recorded,
        is_started=born.is_started,
    )


def _spark_id(storage: Storage, checkpoint_folder: str) -> str | None:
    try:
        return str(json.loads(storage.read_text(join(checkpoint_folder, "metadata")))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_manifest(storage: Storage, query_folder: str, generation: int) -> Manifest:
    file = folders.manifest_file(query_folder, generation)
    try:
        text = storage.read_text(file)
    except UnicodeDecodeError:
        text = ""
    return manifest.from_text(text, file)


def newest_text(storage: Storage, checkpoint_folder: str, log: str) -> str | None:
    """What is written down of the newest batch in a checkpoint's `offsets` or `commits`."""
    newest = newest_batch(storage, join(checkpoint_folder, log))
    return None if newest is None else storage.read_text(join(checkpoint_folder, log, str(newest)))


def batch_under_way(storage: Storage, checkpoint_folder: str) -> int | None:
    """Spark writes a batch's offsets before it runs and its commit after: in between, the batch is under way."""
    planned = newest_batch(storage, join(checkpoint_folder, "offsets"))
    return None if planned == newest_batch(storage, join(checkpoint_folder, "commits")) else planned


def read_files(storage: Storage, checkpoint_folder: str) -> Iterator[ReadFile]:
    """The last files that the query's file sources have read, beside what they are on disk now. Local files only."""
    sources = join(checkpoint_folder, "sources")
    for source in storage.entries(sources):
        logs = [entry for entry in storage.entries(source.path) if entry.name.split(".")[0].isdigit()]
        lines: list[str] = []
        for log in sorted(logs, key=lambda entry: int(entry.name.split(".")[0]), reverse=True):
            lines += [line for line in storage.read_text(log.path).splitlines() if line.startswith("{")]
            if len(lines) >= _LAST_FILES:
                break
        for line in lines[:_LAST_FILES]:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the last line of a log that is being written
            if is_local(entry.get("path", "s3:/")):
                local = to_local(unquote(entry["path"]))  # Spark logs paths as URLs: a space is %20
                now = local.stat().st_mtime_ns // 1_000_000 if local.exists() else None
                yield ReadFile(str(local), entry["timestamp"], entry["batchId"], now)
