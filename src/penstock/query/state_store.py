"""Where a query keeps its state between batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from penstock.problems import did_you_mean
from penstock.spec import Spec, spark_option, spark_option_names, to_option

PREFIX = "spark.sql.streaming.stateStore"
PROVIDER, FORMAT = f"{PREFIX}.providerClass", f"{PREFIX}.checkpointFormatVersion"
ENCODING = f"{PREFIX}.encodingFormat"
"""How rows of state are written: `unsaferow`, or `avro`, which Spark allows for processors alone."""
_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {
    "rocksdb": f"{_PACKAGE}.RocksDBStateStoreProvider",
    "hdfs": f"{_PACKAGE}.HDFSBackedStateStoreProvider",
}
OF_PROCESS = ("bounded_memory", "max_memory_mb", "write_buffer_cache_ratio", "high_priority_pool_ratio")
"""Keys that count for all queries of a process: the first of them to open a store decides."""
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)+")


def _rocksdb(default: Any, description: str, name: str, **constraints: Any) -> Any:
    return spark_option(default, description, name=f"rocksdb.{name}", **constraints)


class State(Spec):
    """Where queries keep their state, for the project or for one query. A checkpoint keeps its store and format."""

    store: str = Field(
        "rocksdb",
        description="`rocksdb` keeps state on disk beside the JVM, `hdfs` in the JVM's memory; or the class name of a"
        " provider of your own. Fixed at birth.",
    )
    format: Literal[1, 2] | None = Field(
        None,
        description="How checkpoints of state are laid out. `2`, which needs RocksDB, names each batch's files apart:"
        " a task that is run twice harms nothing. Default: `2` with RocksDB, else `1`. Fixed at birth.",
    )
    changelog: bool | None = _rocksdb(
        None,
        "Each batch writes its changes alone, and snapshots are taken aside: quicker commits. Default: `true`.",
        "changelogCheckpointing.enabled",
    )
    snapshot_after: int | None = spark_option(
        None, "A snapshot is taken after so many batches of changes; Spark's default is 10.",
        name="minDeltasForSnapshot", gt=0,
    )  # fmt: skip
    compression: str | None = spark_option(
        None, "The codec of the files of state: `lz4` (Spark's default), `zstd`, `snappy` or `lzf`.",
        name="compression.codec",
    )  # fmt: skip
    compact_on_commit: bool | None = _rocksdb(
        None, "Compacts the whole store at each commit: smaller, and slower. Spark's default is `false`.",
        "compactOnCommit",
    )  # fmt: skip
    block_size_kb: int | None = _rocksdb(
        None, "How much data makes a block of RocksDB's files; Spark's default is 4.", "blockSizeKB", gt=0
    )
    block_cache_size_mb: int | None = _rocksdb(
        None, "The memory for blocks that were read, for each store; Spark's default is 8.", "blockCacheSizeMB", gt=0
    )
    lock_timeout_ms: int | None = _rocksdb(
        None, "How long a task waits for a store that another task has open; Spark 4.1's default is 120000.",
        "lockAcquireTimeoutMs", gt=0,
    )  # fmt: skip
    max_open_files: int | None = _rocksdb(
        None, "How many files a store holds open; -1, Spark's default, is all of them.", "maxOpenFiles", ge=-1
    )
    reset_stats: bool | None = _rocksdb(
        None, "RocksDB's own counts begin anew at each load. Spark's default is `true`.", "resetStatsOnLoad"
    )
    track_rows: bool | None = _rocksdb(
        None, "Counts the rows in state. `false` makes writes about twice as fast, and the count is lost.",
        "trackTotalNumberOfRows",
    )  # fmt: skip
    write_buffer_size_mb: int | None = _rocksdb(
        None, "The memory for new rows before they go to disk, for each store; -1 is RocksDB's own default.",
        "writeBufferSizeMB", ge=-1,
    )  # fmt: skip
    max_write_buffers: int | None = _rocksdb(
        None, "How many such buffers a store may have; -1 is RocksDB's own default.", "maxWriteBufferNumber", ge=-1
    )
    bounded_memory: bool | None = _rocksdb(
        None, "All stores of a machine share `max_memory_mb`. For the project: it counts for the whole process.",
        "boundedMemoryUsage",
    )  # fmt: skip
    max_memory_mb: int | None = _rocksdb(
        None, "The memory that all stores of a machine share; Spark's default is 500.", "maxMemoryUsageMB", gt=0
    )
    write_buffer_cache_ratio: float | None = _rocksdb(
        None, "The share of that memory for new rows; Spark's default is 0.5.", "writeBufferCacheRatio", gt=0, lt=1
    )
    high_priority_pool_ratio: float | None = _rocksdb(
        None, "The share of that memory for indexes and filters; Spark's default is 0.1.",
        "highPriorityPoolRatio", gt=0, lt=1,
    )  # fmt: skip
    memory_update_ms: int | None = _rocksdb(
        None, "How often the use of memory is measured; Spark's default is 1000.", "memoryUpdateIntervalMs", gt=0
    )
    file_format_version: int | None = _rocksdb(
        None, "The version of RocksDB's own files; Spark's default is 5. Raise it only once no older Spark reads them.",
        "formatVersion", ge=0,
    )  # fmt: skip
    allow_fallocate: bool | None = _rocksdb(
        None, "Reserves space on disk ahead. `false` saves space on some file systems.", "allowFAllocate"
    )
    file_compression: str | None = _rocksdb(
        None, "How RocksDB compresses its files: `lz4` (Spark's default), `zstd`, `snappy`, `none`.", "compression"
    )
    verify_files_in_zip: bool | None = _rocksdb(
        None, "Looks for empty files before a snapshot is uploaded. Spark's default is `true`.",
        "verifyNonEmptyFilesInZip",
    )  # fmt: skip

    @field_validator("store")
    @classmethod
    def _known_store(cls, store: str) -> str:
        if store not in PROVIDERS and not _CLASS.fullmatch(store):
            raise PydanticCustomError(
                "store",
                "is neither `rocksdb` nor `hdfs`, nor a class with its package{hint}",
                {"hint": did_you_mean(store, PROVIDERS)},
            )
        return store

    @property
    def settings(self) -> dict[str, str]:
        """The Spark settings of these keys and of the defaults of Penstock."""
        with_rocksdb = self.store == "rocksdb"
        own = {
            f"{PREFIX}.{option}": to_option(getattr(self, key))
            for key, option in spark_option_names(State).items()
            if getattr(self, key) is not None
        }
        changelog = {f"{PREFIX}.{spark_option_names(State)['changelog']}": "true"} if with_rocksdb else {}
        format_ = self.format or (2 if with_rocksdb else 1)
        return {PROVIDER: PROVIDERS.get(self.store, self.store), FORMAT: str(format_)} | changelog | own


def merged(project: State | None, query: State | None) -> State:
    """The state of a query: its own keys, then the project's. The keys of another store than its own are left out."""
    below, own = (state.given() if state else {} for state in (project, query))
    if "store" in own and own["store"] != below.get("store", "rocksdb"):
        below = {key: value for key, value in below.items() if key not in _keys_of_rocksdb() | {"format"}}
    return State.model_construct(**(below | own), _fields_set=set(below | own))


def contradictions(state: State) -> Iterator[tuple[str, str]]:
    """What does not go together in the state of a query: the key, and what it needs."""
    given = [key for key in State.model_fields if getattr(state, key) is not None]
    if state.store == "hdfs":
        tuning = [key for key in given if key in _keys_of_rocksdb()]
        yield from ((key, "store: rocksdb") for key in (["format"] if state.format == 2 else []) + tuning)
    elif not state.bounded_memory:
        yield from ((key, "bounded_memory: true") for key in OF_PROCESS[1:] if key in given)


def _keys_of_rocksdb() -> set[str]:
    return {key for key, option in spark_option_names(State).items() if option.startswith("rocksdb.")}
