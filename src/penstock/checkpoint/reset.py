"""A new generation of a query's checkpoint, with a new identity: whole, or never made. The old one is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from penstock.checkpoint import folders
from penstock.checkpoint.manifest import Manifest
from penstock.query.state_store import FORMAT
from penstock.storage.batch_log import batches, newest_batch
from penstock.storage.storage import Storage, join
from penstock.version import VERSION

_UNFINISHED = ".reset"
_NO_OFFSET = "-"


@dataclass(frozen=True)
class Seed:
    """What a new checkpoint begins with: one committed batch. Spark resumes after it."""

    batch: int
    offsets: str
    commit: str
    logs: Mapping[str, str] = field(default_factory=dict)
    """By path under `sources`, the files of the sources' own logs."""


def new_generation(
    storage: Storage, query_folder: str, pipeline: str, query: str, seed: Seed | None, *, unfinished: bool = False
) -> tuple[int, str]:
    """Its number and identity. With `unfinished` no run starts on it before `finish` is called. Raises OSError.

    The manifest comes last: a crash before it leaves a folder that nothing looks at, and the old generation counts.
    """
    number = folders.last_number(storage, query_folder) + 1
    folder, identity = folders.generation_folder(query_folder, number), str(uuid4())
    if seed is not None:
        for name, text in seed.logs.items():
            storage.write_text(join(folder, "sources", name), text)
        storage.write_text(join(folder, "offsets", str(seed.batch)), seed.offsets)
        storage.write_text(join(folder, "commits", str(seed.batch)), seed.commit)
    storage.write_text(join(folder, "metadata"), json.dumps({"id": identity}))
    if unfinished:
        storage.write_text(folder + _UNFINISHED, "{}")
    born = datetime.now(UTC).isoformat(timespec="seconds")
    # Without a Spark: the first start fills in what it is created with.
    begun = Manifest(pipeline=pipeline, query=query, id=identity, born=born, penstock=VERSION, spark="", settings={})
    storage.write_text(folders.manifest_file(query_folder, number), begun.to_text())
    return number, identity


def finish(storage: Storage, query_folder: str, number: int) -> None:
    storage.delete(folders.generation_folder(query_folder, number) + _UNFINISHED)


def is_unfinished(storage: Storage, query_folder: str, number: int) -> bool:
    """Was a reset killed before it had emptied the output?"""
    return storage.is_file(folders.generation_folder(query_folder, number) + _UNFINISHED)


def fit(storage: Storage, checkpoint: str, settings: Mapping[str, str]) -> None:
    """Writes the first commits as the format of the checkpoint wants them, which the first start decides."""
    for batch in batches(storage, join(checkpoint, "commits")):
        watermark = _watermark(storage, checkpoint, batch)
        storage.write_text(
            join(checkpoint, "commits", str(batch)), _commit(watermark, with_ids=settings.get(FORMAT) == "2")
        )


def is_stateful(storage: Storage, checkpoint: str) -> bool:
    return bool(storage.entries(join(checkpoint, "state")))


def seed_of_old(storage: Storage, old: str, batch: int | None = None) -> Seed | None:
    """Resumes where the old checkpoint has committed last; None if it never has. `batch`: counts from there."""
    committed = newest_batch(storage, join(old, "commits"))
    if committed is None:
        return None
    logs = {}
    for source in storage.entries(join(old, "sources")):
        for log in storage.entries(source.path) if source.is_folder else ():
            if not log.is_folder and not log.name.startswith("."):
                logs[f"{source.name}/{log.name}"] = storage.read_text(log.path)
    return Seed(
        committed if batch is None else batch,
        storage.read_text(join(old, "offsets", str(committed))),
        _commit(_watermark(storage, old, committed)),
        logs,
    )


def seed_at(storage: Storage, old: str, offsets: Sequence[str], logs: Mapping[str, str], batch: int) -> Seed:
    """Resumes at given offsets, in the order that the old checkpoint has its sources in."""
    committed = newest_batch(storage, join(old, "commits"))
    settings: Mapping[str, object] = {}
    if committed is not None:
        said = storage.read_text(join(old, "offsets", str(committed))).split("\n")[1]
        settings = json.loads(said or "{}").get("conf", {})
    about = {"batchWatermarkMs": 0, "batchTimestampMs": round(time.time() * 1_000), "conf": dict(settings)}
    text = "\n".join(["v1", json.dumps(about, separators=(",", ":")), *offsets])
    return Seed(batch, text, _commit(0), dict(logs))


def seed_from_start(storage: Storage, old: str, batch: int) -> Seed:
    """Reads everything again, and counts its batches after `batch`."""
    return seed_at(storage, old, [_NO_OFFSET] * max(1, sources_of(storage, old)), {}, batch)


def sources_of(storage: Storage, checkpoint: str) -> int:
    """How many sources the newest committed batch has offsets of."""
    committed = newest_batch(storage, join(checkpoint, "commits"))
    if committed is None:
        return 0
    return len(storage.read_text(join(checkpoint, "offsets", str(committed))).split("\n")) - 2


def _watermark(storage: Storage, checkpoint: str, batch: int) -> int:
    lines = storage.read_text(join(checkpoint, "commits", str(batch))).split("\n")
    return int(json.loads(lines[1] or "{}").get("nextBatchWatermarkMs", 0)) if len(lines) > 1 else 0


def _commit(watermark_ms: int, *, with_ids: bool = False) -> str:
    said: dict[str, object] = {"nextBatchWatermarkMs": watermark_ms}
    if with_ids:  # where format 2 names the files of state
        said["stateUniqueIds"] = {}
    return ("v2\n" if with_ids else "v1\n") + json.dumps(said, separators=(",", ":"))
