"""Looks at the sinks of a query that has a checkpoint: files and databases → facts. Without Spark where it can."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.facts.stored import CheckpointFacts
from penstock.pipeline.model import Pipeline, Query, Sink
from penstock.plan.sinks import CheckpointProgress, SinkFacts
from penstock.sinks.files import Files
from penstock.sinks.held import Holding, StorageFor, claim_folder
from penstock.sinks.ledger import NONE_YET, FileLedger
from penstock.storage.storage import Storage, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEDGER = "ledger"
_SUFFIX = ".sinks.json"


def progress_of(pipeline: str, query: str, known: CheckpointFacts) -> CheckpointProgress:
    return CheckpointProgress(f"{pipeline}.{query}", known.id, known.last_commit, known.last_offset, known.path)


def sink_facts(
    pipeline: Pipeline,
    query: Query,
    known: CheckpointFacts,
    storage: Storage,
    storage_for: StorageFor,
    spark: SparkSession | None = None,
) -> list[SinkFacts]:
    """Each sink whose place can be asked. The pipeline is resolved. Raises Fault, OSError."""
    remembered = _remembered(storage, known.path)
    found = []
    for sink in query.sinks:
        held = _held(pipeline, query, sink, known, storage, storage_for, spark)
        if held is not None:
            found.append(
                SinkFacts(
                    sink.name,
                    sink.spec.type,
                    sink_place(sink),
                    held.last_batch,
                    held.identity,
                    remembered.get(sink.name, {}).get("identity") if _is_same(sink, remembered) else None,
                    held.is_there,
                    held.owner,
                    sink.origin.where,
                )
            )
    return found


def remember(
    query: Query, known: CheckpointFacts, storage: Storage, storage_for: StorageFor, spark: SparkSession | None = None
) -> None:
    """Notes the tables that a checkpoint begins with, once they are made, and claims folders. Raises Fault, OSError.

    What is noted once stays: a later start compares with it.
    """
    kept = _remembered(storage, known.path)
    before = dict(kept)
    for sink in query.sinks:
        held = sink.spec.held(known.id, sink.name, storage_for, spark)
        if held is not None and held.identity is not None and not _is_same(sink, kept):
            kept[sink.name] = {"place": sink_place(sink), "identity": held.identity}
        if isinstance(sink.spec, Files) and held is not None and held.owner != known.id:
            folder = storage_for(sink.spec.path)
            if folder is not None:
                claim_folder(folder, sink.spec.path, known.id)
    if kept != before:
        storage.write_text(known.path.rstrip("/") + _SUFFIX, json.dumps(kept, indent=1) + "\n")


def sink_place(sink: Sink) -> str:
    """Where it writes, for people; never an address with a password."""
    for key in ("path", "table", "topic"):
        if isinstance(value := getattr(sink.spec, key, None), str):
            return value
    return sink.name


def _held(
    pipeline: Pipeline,
    query: Query,
    sink: Sink,
    known: CheckpointFacts,
    storage: Storage,
    storage_for: StorageFor,
    spark: SparkSession | None,
) -> Holding | None:
    held = sink.spec.held(known.id, sink.name, storage_for, spark)
    if held is not None or sink.spec.declared_capabilities.has_ledger:
        return held
    if pipeline.is_native(query) and len(query.sinks) == 1:
        return None
    newest = FileLedger(storage, join(known.path, _LEDGER), known.id).done(sink.name)
    return None if newest == NONE_YET else Holding(newest)


def _is_same(sink: Sink, kept: dict[str, dict[str, str]]) -> bool:
    """Is what is remembered that of the place which the sink has now? A moved sink is judged by its text."""
    return sink.name in kept and kept[sink.name].get("place") == sink_place(sink)


def _remembered(storage: Storage, checkpoint: str) -> dict[str, dict[str, str]]:
    file = checkpoint.rstrip("/") + _SUFFIX
    if not storage.is_file(file):
        return {}
    try:
        said = json.loads(storage.read_text(file))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
