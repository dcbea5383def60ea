"""Looks at the disk once, so that rules can judge it as facts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.checkpoint import folders
from penstock.checkpoint.read import checkpoint
from penstock.checks.rule import Disk
from penstock.facts.stored import BatchCode, CheckpointFacts, FolderFacts
from penstock.notation.paths import has_glob, is_local, to_local
from penstock.notation.references import has_reference
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project
from penstock.storage.storage import Entry, LocalStorage, Storage
from penstock.transforms.python import batch_code_in_source

_MANY_FILES = 1_000
_PARTITION = re.compile(r"^([^=]+)=.+$")


StorageFor = Callable[[str], Storage | None]
"""How a path is reached; None where it cannot be."""


def local_only(path: str) -> Storage | None:
    """What can be looked at without Spark."""
    return LocalStorage() if is_local(path) else None


def look(project: Project, pipeline: Pipeline, storage_root: str | None, storage_for: StorageFor = local_only) -> Disk:
    """What the pipeline's folders and checkpoints are now, as far as they can be reached. Raises OSError."""
    checkpoints: dict[str, CheckpointFacts] = {}
    orphans: tuple[str, ...] = ()
    storage = storage_for(storage_root) if storage_root else None
    if storage is not None and storage_root:
        home = folders.folder_of_pipeline(storage_root, pipeline.name)
        kept = folders.queries_in(storage, home)
        for query in pipeline.queries:
            former = query.settings.was
            name = query.name if query.name in kept else former if former in kept else None
            found = name and checkpoint(storage, folders.folder_of_query(storage_root, pipeline.name, name), query.name)
            if found:
                checkpoints[query.name] = found
        owned = {name for query in pipeline.queries for name in (query.name, query.settings.was)}
        orphans = tuple(name for name in kept if name not in owned)
    return Disk(
        folders=dict(_folders(project, pipeline, storage_for)),
        checkpoints=checkpoints,
        orphans=orphans,
        storage=folder_facts(storage, storage_root) if storage is not None and storage_root else None,
        batch_code=dict(_batch_code(project, pipeline)),
    )


def _batch_code(project: Project, pipeline: Pipeline) -> Iterator[tuple[str, BatchCode]]:
    for sink in pipeline.sinks:
        name = getattr(sink.spec, "each_batch", None)
        if isinstance(name, str) and (found := batch_code_in_source(name, project.root)):
            yield sink.name, found


def _folders(project: Project, pipeline: Pipeline, storage_for: StorageFor) -> Iterator[tuple[str, FolderFacts]]:
    for node in (*pipeline.sources, *pipeline.sinks):
        written = getattr(node.spec, "path", None)
        if isinstance(written, str) and not has_reference(written):
            path = project.absolute(written)
            storage = storage_for(path)
            if storage is not None:
                yield path, folder_facts(storage, path)


def folder_facts(storage: Storage, path: str) -> FolderFacts:
    """One folder, or all that a glob matches."""
    entries = [] if has_glob(path) else storage.entries(path)
    seen = [entry.name for entry in entries if not entry.is_folder and not entry.name.startswith((".", "_"))]
    return FolderFacts(
        path=path,
        exists=storage.exists(path),
        is_file=storage.is_file(path),
        writable=not is_local(path) or _is_writable(to_local(path)),
        files=tuple(seen[:_MANY_FILES]),
        partition_columns=_partition_columns(storage, entries),
        last_sink_batch=_last_sink_batch(storage, entries),
    )


def _last_sink_batch(storage: Storage, entries: list[Entry]) -> int | None:
    """The newest batch in a file sink's own log of its folder."""
    log = next((entry.path for entry in entries if entry.name == "_spark_metadata"), None)
    names = [entry.name.removesuffix(".compact") for entry in storage.entries(log)] if log else []
    return max((int(name) for name in names if name.isdigit()), default=None)


def _partition_columns(storage: Storage, entries: list[Entry]) -> tuple[str, ...]:
    columns: list[str] = []
    while True:
        keyed = [(entry, match[1]) for entry in entries if entry.is_folder and (match := _PARTITION.match(entry.name))]
        if not keyed:
            return tuple(columns)
        columns.append(keyed[0][1])
        entries = storage.entries(keyed[0][0].path)


def _is_writable(path: Path) -> bool:
    """May this user make files there, or make the folder?"""
    nearest = next((folder for folder in (path, *path.parents) if folder.exists()), path)
    return os.access(
        nearest, os.W_OK | (os.X_OK if nearest.is_dir() else 0), effective_ids=os.access in os.supports_effective_ids
    )
