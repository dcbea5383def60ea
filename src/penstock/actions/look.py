"""Looks at the disk once, so that rules can judge it as facts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from penstock.checkpoint import folders
from penstock.checkpoint.read import checkpoint
from penstock.checks.rule import Disk
from penstock.facts import CheckpointFacts, FolderFacts
from penstock.paths import fixed_part, has_glob, is_local, to_local
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project
from penstock.references import has_reference
from penstock.storage import Entry, LocalStorage, Storage

_MANY_FILES = 1_000
_PARTITION = re.compile(r"^([^=]+)=.+$")


def look(project: Project, pipeline: Pipeline, storage_root: str, storage: Storage | None = None) -> Disk:
    """What the pipeline's folders and checkpoints are now. Without a `storage`, only what is local is looked at."""
    local = LocalStorage()
    checkpoints: dict[str, CheckpointFacts] = {}
    orphans: tuple[str, ...] = ()
    used = storage or (local if is_local(storage_root) else None)
    if used is not None:
        home = folders.folder_of_pipeline(storage_root, pipeline.name)
        kept = folders.queries_in(used, home)
        for query in pipeline.queries:
            former = query.settings.was
            name = query.name if query.name in kept else former if former in kept else None
            found = name and checkpoint(used, folders.folder_of_query(storage_root, pipeline.name, name), query.name)
            if found:
                checkpoints[query.name] = found
        owned = {name for query in pipeline.queries for name in (query.name, query.settings.was)}
        orphans = tuple(name for name in kept if name not in owned)
    return Disk(
        folders=dict(_folders(project, pipeline, local)),
        checkpoints=checkpoints,
        orphans=orphans,
        storage=folder_facts(local, storage_root) if is_local(storage_root) else None,
    )


def _folders(project: Project, pipeline: Pipeline, local: LocalStorage) -> Iterator[tuple[str, FolderFacts]]:
    for node in (*pipeline.sources, *pipeline.sinks):
        written = getattr(node.spec, "path", None)
        if isinstance(written, str) and not has_reference(written) and is_local(written):
            path = project.absolute(written)
            yield path, folder_facts(local, path)


def folder_facts(storage: LocalStorage, path: str) -> FolderFacts:
    """One folder, or all that a glob matches."""
    exists = storage.exists(path)
    entries = storage.entries(fixed_part(path)) if not has_glob(path) else []
    return FolderFacts(
        path=path,
        exists=exists,
        is_file=storage.is_file(path),
        writable=_is_writable(to_local(path)),
        files=tuple(entry.name for entry in entries if not entry.is_folder and not entry.name.startswith((".", "_")))[
            :_MANY_FILES
        ],
        partition_columns=_partition_columns(storage, entries),
    )


def _partition_columns(storage: LocalStorage, entries: list[Entry]) -> tuple[str, ...]:
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
