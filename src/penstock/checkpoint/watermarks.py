"""How far a query's event time has come, from its checkpoint alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.checkpoint import folders
from penstock.checkpoint.read import newest_text
from penstock.pipeline.model import Pipeline
from penstock.storage.storage import Storage, join


@dataclass(frozen=True)
class Horizon:
    """A query with state drops rows whose event time is not later than its watermark."""

    query: str
    columns: tuple[str, ...]
    """The event-time columns of the nodes that it is made of."""
    watermark: datetime


def horizons(storage: Storage, storage_root: str, pipeline: Pipeline, source: str) -> list[Horizon]:
    """Those of the queries that read a source, keep state and have a watermark that has begun to move."""
    found = []
    for query in pipeline.queries:
        nodes = pipeline.upstream(query.name)
        columns = {node.spec.watermark.column for node in nodes if node.spec.watermark is not None}
        if not columns or pipeline.puts_aside(query.name) or source not in {node.name for node in nodes}:
            continue
        home = folders.folder_of_query(storage_root, pipeline.name, query.name)
        generations = folders.generations_in(storage, home)
        if not generations:
            continue
        checkpoint = folders.generation_folder(home, generations[-1])
        if storage.entries(join(checkpoint, "state")) and (milliseconds := watermark_ms(storage, checkpoint)):
            moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
            found.append(Horizon(query.name, tuple(sorted(columns)), moment))
    return found


def watermark_ms(storage: Storage, checkpoint_folder: str) -> int:
    """The newest watermark that is written down; 0 before there is one."""
    logs = (("offsets", "batchWatermarkMs"), ("commits", "nextBatchWatermarkMs"))
    return max((_logged(storage, checkpoint_folder, log, key) for log, key in logs), default=0)


def _logged(storage: Storage, checkpoint_folder: str, log: str, key: str) -> int:
    for line in (newest_text(storage, checkpoint_folder, log) or "").splitlines():
        told = _object(line)
        if key in told:
            return int(told[key])
    return 0


def _object(line: str) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
