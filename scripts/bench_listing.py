"""How long Spark takes to list a folder of many files, and how often it does: `python scripts/bench_listing.py`.

It makes small files in a temporary folder, reads them in batches of 100 and takes `latestOffset` from Spark's progress:
the time in which a batch finds out which files are new. The figures of docs/how-to/many-files.md come from it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine import session
from penstock.sources import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDERS = 100
FILES_IN_A_BATCH = 100
BATCHES = 10


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="how many files")
    counts = arguments.parse_args().files
    with tempfile.TemporaryDirectory(prefix="penstock-listing-") as root, spark_in(Path(root)) as spark:
        # Classes are loaded and compiled in a first round, which does not count.
        measure(spark, made(Path(root), 500), Path(root) / "warm", {})
        for count in counts:
            folder = made(Path(root), count)
            say(f"{count:>9,} files in {FOLDERS} folders")
            for name, keys in cases(folder).items():
                seconds, whole = measure(spark, folder, Path(root) / f"{count}-{name}", keys)
                say(
                    f"    {name:<36} first {seconds[0]:7.3f} s   median {statistics.median(seconds):7.3f} s"
                    f"   all {len(seconds):2} batches {sum(seconds):7.3f} s   from start to end {whole:7.3f} s"
                )


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        "max_cached_files: 0": {"max_cached_files": 0},
        "as it is (10,000 files are cached)": {},
        "available_now": {"available_now": True},
        "one folder of the hundred": {"path": f"{folder}/day=7", "max_cached_files": 0},
    }


def made(root: Path, count: int) -> Path:
    """A folder with so many files of one line, in sub-folders as they are common."""
    folder = root / f"files-{count}"
    for day in range(FOLDERS):
        (folder / f"day={day}").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"day={number % FOLDERS}" / f"{number}.txt").write_text(f"{number}\n", encoding="utf-8")
    return folder


def measure(spark: SparkSession, folder: Path, checkpoint: Path, keys: dict[str, Any]) -> tuple[list[float], float]:
    """Seconds that each of the first batches took to find its files, and seconds for all that was done."""
    keys = {"path": str(folder), "max_files_per_trigger": FILES_IN_A_BATCH} | keys
    available_now = keys.pop("available_now", False)
    rows = Files(format="text", **keys).load(spark)
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="0 seconds")
    began = time.perf_counter()
    query = writer.start()
    while query.isActive and _batches(query) < BATCHES and not _is_idle(query):
        time.sleep(0.05)
    whole = time.perf_counter() - began
    query.stop()
    found = [progress for progress in query.recentProgress if "addBatch" in progress["durationMs"]][:BATCHES]
    return [progress["durationMs"].get("latestOffset", 0) / 1_000 for progress in found], whole


def _batches(query: Any) -> int:
    return sum("addBatch" in progress["durationMs"] for progress in query.recentProgress)


def _is_idle(query: Any) -> bool:
    last = query.lastProgress
    return last is not None and last["batchId"] > 0 and "addBatch" not in last["durationMs"]


@contextmanager
def spark_in(folder: Path) -> Iterator[SparkSession]:
    engine = session.start("bench-listing", {"spark.master": "local[2]"}, folder / "spark")
    try:
        yield engine.spark
    finally:
        engine.close()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
