"""Makes a checkpoint ready for a start: takes it over from a former name, or gives it its identity and manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.checkpoint import folders
from penstock.checkpoint.manifest import Manifest
from penstock.checkpoint.read import checkpoint
from penstock.facts.stored import CheckpointFacts
from penstock.pipeline.model import Pipeline, Query, Step
from penstock.problems import Problem, UserError
from penstock.storage.storage import Storage, join
from penstock.transforms.python import module_file
from penstock.version import VERSION


def prepare(
    storage: Storage,
    storage_root: str,
    pipeline: Pipeline,
    query: Query,
    root: Path,
    spark_version: str,
    settings: Mapping[str, str],
    partition_columns: Mapping[str, tuple[str, ...]],
) -> CheckpointFacts:
    """The checkpoint to start on: the newest generation, or a first one with a fresh identity. Raises UserError."""
    folder = folders.folder_of_query(storage_root, pipeline.name, query.name)
    try:
        if query.settings.was and not folders.generations_in(storage, folder):
            _take_over(storage, folders.folder_of_query(storage_root, pipeline.name, query.settings.was), folder)
        found = checkpoint(storage, folder, query.name)
        if found is not None:
            return found
        born = Manifest(
            pipeline=pipeline.name,
            query=query.name,
            id=str(uuid4()),
            born=datetime.now(UTC).isoformat(timespec="seconds"),
            penstock=VERSION,
            spark=spark_version,
            settings=dict(settings),
            partition_columns=dict(partition_columns),
            code=code_hashes(pipeline, query, root),
            definition=definition(pipeline, query),
        )
        # The identity first and the manifest last: a crash in between leaves a folder that was never started, and
        # the next start gives it a new identity before Spark has seen the old one.
        identity = join(folders.generation_folder(folder, 1), "metadata")
        storage.write_text(identity, json.dumps({"id": born.id}))
        storage.write_text(folders.manifest_file(folder, 1), born.to_text())
    except OSError as error:
        raise UserError(cannot_write(folder, error, query)) from None
    path = folders.generation_folder(folder, 1)
    return CheckpointFacts(query.name, 1, path, born.id, born.id, born.settings, born.partition_columns)


def cannot_write(folder: str, error: OSError, query: Query) -> Problem:
    why = error.strerror or error
    return Problem("CHECKPOINT002", f"the checkpoint of `{query.name}` cannot be kept in `{folder}`: {why}",
                   "give this user the right to write there, free some space, or change `storage` in penstock.yaml",
                   query.origin.where)  # fmt: skip


def definition(pipeline: Pipeline, query: Query) -> dict[str, Any]:
    """The query as written: what a later plan is compared with."""
    return {
        "nodes": {
            node.name: {"inputs": list(node.inputs) if isinstance(node, Step) else [], "spec": node.spec.given()}
            for node in pipeline.upstream(query.name)
        },
        "sinks": {sink.name: sink.spec.given() for sink in query.sinks},
        "mode": query.settings.mode,
    }


def code_hashes(pipeline: Pipeline, query: Query, root: Path) -> dict[str, str]:
    """By module, the hash of the user's code that the query runs."""
    steps = [node.spec for node in pipeline.upstream(query.name) if isinstance(node, Step)]
    modules = {spec.code.partition(":")[0] for spec in steps if spec.code}
    files = {module: module_file(module, root) for module in sorted(modules)}
    return {module: hashlib.sha256(file.read_bytes()).hexdigest() for module, file in files.items() if file}


def _take_over(storage: Storage, old: str, new: str) -> None:
    for generation in folders.generations_in(storage, old):
        # The manifest last: where a rename is a copy, a crash in between leaves what the next start can finish.
        if storage.exists(folders.generation_folder(old, generation)):
            storage.rename(folders.generation_folder(old, generation), folders.generation_folder(new, generation))
        storage.rename(folders.manifest_file(old, generation), folders.manifest_file(new, generation))
