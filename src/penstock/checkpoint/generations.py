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
from penstock.checkpoint.damage import reset_command
from penstock.checkpoint.manifest import Manifest
from penstock.checkpoint.read import checkpoint, read_manifest
from penstock.checkpoint.reset import fit, is_unfinished
from penstock.facts.signature import Recorded
from penstock.facts.stored import CheckpointFacts
from penstock.pipeline.model import Pipeline, Query, Step
from penstock.problems import Problem, UserError
from penstock.storage.batch_log import newest_batch
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
    recorded: Recorded = Recorded(),  # noqa: B008 - frozen
) -> CheckpointFacts:
    """The checkpoint to start on: the newest generation, or a first one with a fresh identity. Raises UserError.

    Its manifest has recorded what is started, before Spark sees the checkpoint.
    """
    folder = folders.folder_of_query(storage_root, pipeline.name, query.name)
    try:
        if query.settings.was and not folders.generations_in(storage, folder):
            _take_over(storage, folders.folder_of_query(storage_root, pipeline.name, query.settings.was), folder)
        require_manifests(storage, folder, f"{pipeline.name}.{query.name}")
        found = checkpoint(storage, folder, query.name)
        if found is not None and is_unfinished(storage, folder, found.generation):
            raise UserError(_interrupted(f"{pipeline.name}.{query.name}", query))
        if found is not None and read_manifest(storage, folder, found.generation).is_started:
            _record(storage, folder, found, recorded)
            return found
        born = Manifest(
            pipeline=pipeline.name,
            query=query.name,
            id=found.id if found else str(uuid4()),
            born=datetime.now(UTC).isoformat(timespec="seconds"),
            penstock=VERSION,
            spark=spark_version,
            settings=dict(settings),
            partition_columns=dict(partition_columns),
            code=code_hashes(pipeline, query, root),
        ).with_recorded(recorded if recorded.definition else Recorded(definition(pipeline, query)))
        # The identity first and the manifest last: a crash in between leaves a folder that was never started, and
        # the next start gives it a new identity before Spark has seen the old one.
        # A generation that a reset has made has its identity, and its manifest gets what the start decides.
        number = found.generation if found else 1
        path = folders.generation_folder(folder, number)
        if found is not None:
            fit(storage, path, settings)
        else:
            storage.write_text(join(path, "metadata"), json.dumps({"id": born.id}))
        storage.write_text(folders.manifest_file(folder, number), born.to_text())
        begun = checkpoint(storage, folder, query.name)
    except OSError as error:
        raise UserError(cannot_write(folder, error, query)) from None
    return begun or CheckpointFacts(query.name, number, path, born.id, born.id, born.settings, born.partition_columns)


def _interrupted(name: str, query: Query) -> Problem:
    return Problem("CHECKPOINT027", f"a reset of `{name}` was interrupted before it had emptied the output",
                   f"run it again: `{reset_command(name)} --empty-output`", query.origin.where)  # fmt: skip


def require_manifests(storage: Storage, query_folder: str, name: str) -> None:
    """Raises UserError if a generation was started and has lost its manifest."""
    for generation in folders.unclaimed_in(storage, query_folder):
        path = folders.generation_folder(query_folder, generation)
        raise UserError(
            Problem("CHECKPOINT021", f"the checkpoint `{path}` of `{name}` has no manifest any more",
                    f"restore `{folders.manifest_file(query_folder, generation)}` from a backup; or move the folder"
                    f" away and begin a new checkpoint: `{reset_command(name)}`")
        )  # fmt: skip


def discard(storage: Storage, checkpoint: CheckpointFacts) -> None:
    """Removes a generation that was made for a start that was refused. One that has planned a batch stays."""
    if newest_batch(storage, join(checkpoint.path, "offsets")) is None:
        # The manifest first: a folder without one was never started.
        storage.remove(f"{checkpoint.path}.json")
        storage.remove(checkpoint.path)


def _record(storage: Storage, folder: str, found: CheckpointFacts, recorded: Recorded) -> None:
    if found.recorded != recorded:
        manifest = read_manifest(storage, folder, found.generation).with_recorded(recorded)
        storage.write_text(folders.manifest_file(folder, found.generation), manifest.to_text())


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
