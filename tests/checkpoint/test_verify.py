"""A checkpoint against itself: real ones are damaged, file by file."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.checkpoint import seals
from penstock.checkpoint.damage import Damage, stops
from penstock.checkpoint.sums import crc32c
from penstock.checkpoint.verify import cheap, deep, heal
from penstock.prepare.needs import StartEngine
from penstock.storage.storage import LocalStorage
from tests.checkpoint.recorded import BATCHES, STORES, Recorded, run_again
from tests.grids import grid

pytestmark = pytest.mark.spark
storage = LocalStorage()
QUERIES = ("plain", *STORES, "joined")


def newest(folder: Path, pattern: str = "*") -> Path:
    """The file of the highest number."""
    files = (file for file in folder.glob(pattern) if file.name[0].isdigit() and not file.name.endswith(".crc"))
    return max(files, key=lambda file: int(file.name.partition("_")[0].partition(".")[0]))


def before(file: Path) -> Path:
    """The one of the same kind with the next lower number."""
    number = int(file.name.partition("_")[0].partition(".")[0])
    return next(
        other
        for other in file.parent.iterdir()
        if other.suffix == file.suffix
        and other.name[0].isdigit()
        and int(other.name.partition("_")[0].partition(".")[0]) == number - 1
    )


def sum_before(file: Path) -> Path:
    return file.with_name(f".{int(file.name.strip('.').partition('.')[0]) - 1}.crc")


KINDS: dict[str, tuple[str, Callable[[Path], Path], Callable[[Path], Path]]] = {
    "identity": ("hdfs", lambda c: c / "metadata", lambda f: f.parents[2] / "plain/0001/metadata"),
    "offsets": ("plain", lambda c: newest(c / "offsets"), before),
    "commits": ("hdfs", lambda c: newest(c / "commits"), lambda f: f.parent / "5"),
    "commits of format 2": ("lineage", lambda c: newest(c / "commits"), before),
    "source log": ("plain", lambda c: newest(c / "sources/0"), before),
    "compact source log": ("plain", lambda c: newest(c / "sources/0", "*.compact"), lambda f: f.parent / "8"),
    "state of hdfs": ("hdfs", lambda c: newest(filled(c / "state/0"), "*.delta"), before),
    "snapshot of RocksDB": ("rocksdb", lambda c: newest(filled(c / "state/0"), "*.zip"), before),
    "table of RocksDB": (
        "rocksdb",
        lambda c: sorted((filled(c / "state/0") / "SSTs").glob("*.sst"))[-1],
        lambda f: sorted(f.parent.glob("*.sst"))[0],
    ),
    "changes of RocksDB": ("changelog", lambda c: newest(filled(c / "state/0"), "*.changelog"), before),
    "changes of format 2": ("joined", lambda c: newest(c / "state/0/0/left-keyToNumValues", "*.changelog"), before),
    "columns of state": (
        "lineage",
        lambda c: c / "state/0/0/_metadata/schema",
        lambda f: f.parents[6] / "joined/0001/state/0/0/left-keyToNumValues/_metadata/schema",
    ),
    "stores of an operator": (
        "lineage",
        lambda c: c / "state/0/_metadata/metadata",
        lambda f: f.parents[5] / "joined/0001/state/0/_metadata/metadata",
    ),
    "note of a sink": ("hdfs", lambda c: c / "ledger/hdfs_out.json", lambda f: f.parents[3] / "rocksdb/0001/metadata"),
    "sum of Hadoop": ("plain", lambda c: c / "offsets" / f".{newest(c / 'offsets').name}.crc", sum_before),
    "sum of Spark": (
        "hdfs",
        lambda c: with_name(newest(filled(c / "state/0"), "*.delta"), "{}.crc"),
        lambda f: with_name(before(f.with_suffix("")), "{}.crc"),
    ),
}  # fmt: skip
"""By kind of file: whose it is, which one, and the older one that it is swapped with."""
HARMLESS = {("sum of Hadoop", "delete"), ("sum of Spark", "delete"), ("note of a sink", "delete")}
"""What Spark and Penstock can do without: the rows are the same (`test_a_start_heals_what_is_harmless`)."""


def filled(operator: Path) -> Path:
    """The partition that holds more, as it is before snapshots of its changes are taken."""
    folder = max((operator / "0", operator / "1"), key=lambda one: sum(f.stat().st_size for f in one.rglob("*")))
    if any(folder.glob("*.changelog")) or any(folder.glob("*.delta")):
        for file in (*folder.glob("*.zip"), *folder.glob("*.snapshot")):
            file.unlink()
    return folder


def with_name(file: Path, pattern: str) -> Path:
    return file.with_name(pattern.format(file.name))


def truncate(file: Path, older: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def alter(file: Path, older: Path) -> None:
    content = bytearray(file.read_bytes())
    place = max(len(content) - 3, 0)
    content[place] ^= 0x01
    file.write_bytes(bytes(content))


def delete(file: Path, older: Path) -> None:
    file.unlink()


def swap(file: Path, older: Path) -> None:
    """With its sums: then nothing in the file itself tells."""
    shutil.copyfile(older, file)
    for pattern in (".{}.crc", "{}.crc", ".{}.crc.crc"):
        if with_name(older, pattern).exists() and with_name(file, pattern).exists():
            shutil.copyfile(with_name(older, pattern), with_name(file, pattern))


@pytest.fixture
def copy(recorded: Recorded, tmp_path: Path) -> Recorded:
    return recorded.copied(tmp_path / "copy")


def verified(project: Recorded, query: str) -> list[Damage]:
    manifest = json.loads(project.checkpoint(query).with_suffix(".json").read_text())
    return deep(storage, str(project.checkpoint(query)), name=f"recorded.{query}", identity=manifest["id"])


@pytest.mark.parametrize("query", QUERIES)
def test_what_spark_writes_is_whole(recorded: Recorded, query: str) -> None:
    assert verified(recorded, query) == []
    assert cheap(storage, str(recorded.checkpoint(query)), name=f"recorded.{query}") == []
    assert len(list((recorded.checkpoint(query) / "commits").glob("[0-9]*"))) >= BATCHES


@grid("kind,way", list(KINDS), [truncate, alter, delete, swap])
def test_each_damage_is_found(copy: Recorded, kind: str, way: Callable[[Path, Path], None]) -> None:
    query, file_of, older_of = KINDS[kind]
    checkpoint = copy.checkpoint(query)
    file = file_of(checkpoint)
    older = older_of(file)
    assert older.exists()
    assert older != file
    way(file, older)
    found = verified(copy, query)
    if (kind, way.__name__) in HARMLESS:
        assert stops(found) == []
        return
    assert found, f"{kind} {way.__name__}: silent"
    assert any(part in damage.file for damage in found for part in (file.name, str(file.parent)))
    for damage in stops(found):
        assert f"penstock checkpoint reset recorded.{query} --from earliest" in damage.fix
        assert damage.problem().severity == "error"


@pytest.mark.parametrize("way", [truncate, alter, delete, swap])
@pytest.mark.parametrize("kind", ["identity", "offsets", "commits of format 2", "source log"])
def test_a_start_finds_what_it_would_trip_over(copy: Recorded, kind: str, way: Callable[[Path, Path], None]) -> None:
    query, file_of, older_of = KINDS[kind]
    file = file_of(copy.checkpoint(query))
    way(file, older_of(file))
    manifest = json.loads(copy.checkpoint(query).with_suffix(".json").read_text())
    assert cheap(storage, str(copy.checkpoint(query)), name="recorded.x", identity=manifest["id"])


def test_a_file_that_is_altered_together_with_its_sum_differs_from_the_seal(copy: Recorded) -> None:
    log = newest(copy.checkpoint("plain") / "sources/0")
    log.write_text(log.read_text().replace(".json", ".jsom"))
    with_name(log, ".{}.crc").unlink()
    (damage,) = verified(copy, "plain")
    assert (damage.code, damage.file) == ("CHECKPOINT019", str(log))


def test_an_older_copy_of_a_whole_checkpoint_is_seen(copy: Recorded) -> None:
    checkpoint = copy.checkpoint("plain")
    for log in ("offsets", "commits", "sources/0"):
        last = newest(checkpoint / log)
        with_name(last, ".{}.crc").unlink()
        last.unlink()
    (damage,) = verified(copy, "plain")
    assert damage.code == "CHECKPOINT019"
    assert f"ends with batch {BATCHES - 2}, and the last run has left it with batch {BATCHES - 1}" in damage.message
    Path(seals.seal_file(str(checkpoint))).unlink()
    assert verified(copy, "plain") == []


def test_a_commit_that_is_gone_is_a_batch_that_runs_again(copy: Recorded) -> None:
    commit = newest(copy.checkpoint("hdfs") / "commits")
    commit.unlink()
    (damage,) = verified(copy, "hdfs")
    assert (damage.code, damage.heals) == ("CHECKPOINT020", True)
    heal(storage, [damage])
    assert verified(copy, "hdfs") == []


def test_batches_that_spark_has_purged_are_not_missed(copy: Recorded) -> None:
    checkpoint = copy.checkpoint("changelog")
    for number in range(5):
        for log in ("offsets", "commits"):
            (checkpoint / log / str(number)).unlink()
            (checkpoint / log / f".{number}.crc").unlink()
    assert verified(copy, "changelog") == []


def test_a_missing_version_in_between_is_found(copy: Recorded) -> None:
    folder = filled(copy.checkpoint("changelog") / "state/0")
    (folder / "7.changelog").unlink()
    (damage,) = verified(copy, "changelog")
    assert (damage.code, damage.file) == ("CHECKPOINT015", str(folder))
    assert "has no version 7" in damage.message


def test_what_a_snapshot_stands_for_is_not_missed(copy: Recorded) -> None:
    folder = filled(copy.checkpoint("hdfs") / "state/0")
    last = newest(folder, "*.delta")
    number = int(last.stem)
    shutil.copyfile(last, folder / f"{number - 1}.snapshot")
    for old in range(1, number):
        (folder / f"{old}.delta").unlink()
    assert verified(copy, "hdfs") == []
    last.unlink()
    assert [damage.code for damage in verified(copy, "hdfs")] == ["CHECKPOINT015"]


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["sum of Spark", "note of a sink", "commits"])
def test_a_start_heals_what_is_harmless(
    copy: Recorded, recorded: Recorded, start_engine: StartEngine, kind: str, tmp_path: Path
) -> None:
    """The rows after it are those of a run on a checkpoint that nothing happened to."""
    query, file_of, _ = KINDS[kind]
    untouched = recorded.copied(tmp_path / "untouched")
    file_of(copy.checkpoint(query)).unlink()
    more = recorded.root.parent / "data" / "orders" / "later.json"
    more.write_text('{"id": 99, "k": "key1", "at": "2026-01-01T01:00:00Z"}\n')
    try:
        for project in (copy, untouched):
            run_again(project, start_engine, "recorded")
    finally:
        more.unlink()
    outputs = [sorted(line for f in (one.root / f"out/{query}_out").iterdir() for line in f.read_text().splitlines())
               for one in (copy, untouched)]  # fmt: skip
    assert outputs[0] == outputs[1]


def test_a_start_reads_a_few_files_in_a_moment(recorded: Recorded, tmp_path: Path) -> None:
    """A checkpoint with 100 kept batches."""
    checkpoint = tmp_path / "0001"
    shutil.copytree(recorded.checkpoint("changelog"), checkpoint)
    for log in ("offsets", "commits"):
        last = newest(checkpoint / log)
        shutil.copyfile(last, checkpoint / log / "112")
        for number in range(14, 112):
            shutil.copyfile(last, checkpoint / log / str(number))
    read = Counted()
    spent = []
    for _ in range(5):
        read.files = 0
        begun = time.process_time()
        cheap(read, str(checkpoint), name="recorded.changelog")
        spent.append(time.process_time() - begun)
    assert read.files <= 20
    assert min(spent) < 0.05


class Counted(LocalStorage):
    """Counts the files that are read."""

    files = 0

    def read_bytes(self, path: str) -> bytes:
        self.files += 1
        return super().read_bytes(path)


def test_sums_are_those_that_java_computes() -> None:
    assert crc32c(b"123456789") == 0xE3069283
