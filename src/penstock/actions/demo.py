"""The main job on embedded parts alone: a generator places files while the pipeline reads them."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.actions.init import init
from penstock.actions.order_feed import Feed, order_files, place
from penstock.actions.run import RunOptions, RunResult, run
from penstock.checkpoint import folders
from penstock.checkpoint.read import batch_under_way
from penstock.prepare.needs import StartEngine
from penstock.storage.storage import LocalStorage
from penstock.supervise.backlog import FilesTaken
from penstock.supervise.query_view import Snapshot
from penstock.supervise.stopping import Stop
from penstock.supervise.supervisor import Listener

FILES = 24
_SECONDS_BETWEEN_FILES = 0.5
_SETTLED_SECONDS = 1.5


@dataclass(frozen=True)
class DemoResult:
    """What went in, what came out, and where it lies."""

    run: RunResult
    fed: Feed
    folder: str
    output: str
    revenue: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    """By region, the revenue of each minute."""
    orders: int = 0
    malformed: int = 0
    late: int = 0

    @property
    def ok(self) -> bool:
        return self.run.ok and self.orders > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "folder": self.folder,
            "output": self.output,
            "fed": vars(self.fed),
            "orders": self.orders,
            "malformed": self.malformed,
            "late": self.late,
            "revenue": self.revenue,
            "run": self.run.to_json(),
        }


def demo(
    folder: Path,
    start_engine: StartEngine,
    stop: Stop,
    on_snapshot: Callable[[Snapshot], None],
    on_event: tuple[Listener, ...] = (),
) -> DemoResult:
    """Makes the demo's project anew in `folder`, feeds it and runs it until all is read. Raises UserError."""
    if (folder / _MARK).is_file():
        shutil.rmtree(folder)  # an earlier demo; any other folder is left alone
    init(folder, sample_files=0)
    (folder / _MARK).write_text("Made by `penstock demo`. The next one makes it again.\n", encoding="utf-8")
    generator = _Generator(folder / "data" / "orders")
    watched = _UntilAllIsRead(folder, generator, stop, on_snapshot)
    try:
        result = run(folder, (), None, RunOptions(), start_engine, stop, watched.snapshot, _ignored, on_event)
    finally:
        generator.end.set()
    revenue, orders = _revenue(folder / "out" / "revenue")
    malformed = sum(query.rows_out for query in result.queries if query.name == "malformed")
    late = sum(query.late_rows + query.late_groups for query in result.queries if query.name == "revenue")
    return DemoResult(
        result, generator.fed, str(folder), str(folder / "out" / "revenue"), revenue, orders, malformed, late
    )


_MARK = ".penstock-demo"


def _ignored(line: str) -> None:
    """The demo has no console sink."""


class _Generator(threading.Thread):
    """Places a file every half second, whole."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="order-generator", daemon=True)
        self.folder, self.fed, self.end, self.placed = folder, Feed(), threading.Event(), 0

    def run(self) -> None:
        for text, counted in order_files(FILES):
            place(text, self.folder, f"orders-{self.placed + 1:03d}.json")
            self.placed += 1
            self.fed += counted
            if self.end.wait(_SECONDS_BETWEEN_FILES):
                return


class _UntilAllIsRead:
    """Asks the run to end once every file is read and its last batch committed."""

    def __init__(
        self, folder: Path, generator: _Generator, stop: Stop, on_snapshot: Callable[[Snapshot], None]
    ) -> None:
        self._root, self._generator, self._stop, self._on_snapshot = folder / "storage", generator, stop, on_snapshot
        self._settled_since: float | None = None

    def snapshot(self, snapshot: Snapshot) -> None:
        self._on_snapshot(snapshot)
        if not self._generator.placed and not self._generator.is_alive():
            self._generator.start()  # once the queries run, so that they see files arrive
        if self._generator.is_alive() or self._stop.asked or not all(map(self._has_read_all, snapshot.queries)):
            self._settled_since = None
            return
        self._settled_since = self._settled_since or time.monotonic()
        if time.monotonic() - self._settled_since > _SETTLED_SECONDS:
            self._stop.ask()

    def _has_read_all(self, query: Any) -> bool:
        storage = LocalStorage()
        checkpoint = folders.generation_folder(folders.folder_of_query(str(self._root), query.pipeline, query.name), 1)
        taken = FilesTaken(storage, checkpoint).count()
        return taken >= self._generator.placed and batch_under_way(storage, checkpoint) is None


def _revenue(folder: Path) -> tuple[dict[str, list[tuple[str, float]]], int]:
    """The result, read back from its files."""
    import pyarrow.dataset as datasets

    rows = datasets.dataset(folder, format="parquet").to_table().to_pylist() if folder.is_dir() else []
    regions: dict[str, list[tuple[str, float]]] = {}
    for row in sorted(rows, key=lambda row: (row["region"], row["minute"])):
        regions.setdefault(row["region"], []).append((row["minute"].isoformat(), row["revenue"]))
    return regions, sum(row["orders"] for row in rows)
