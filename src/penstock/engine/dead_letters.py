"""Dead letters, read back from the place where a pipeline puts them. Letters in local Parquet need no JVM."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from penstock.connections.kafka import KafkaAddress
from penstock.paths import is_local, to_local
from penstock.pipeline.model import Pipeline
from penstock.problems import Fault
from penstock.records import ORIGIN_SCHEMA
from penstock.sinks.files import Files
from penstock.sinks.sink import SinkSpec
from penstock.spec import given_options
from penstock.storage import Storage, join

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = f"id STRING, node STRING, check STRING, reason STRING, raw BINARY, {ORIGIN_SCHEMA}, at TIMESTAMP"
"""The columns of a dead letter, as Spark writes them."""
UNREADABLE = "DEADLETTER003"
ID_LENGTH = 64
_LOG = "_spark_metadata"


@dataclass(frozen=True)
class Letter:
    """A record that was put aside: why, and where it came from."""

    id: str
    pipeline: str
    node: str
    check: str
    reason: str | None
    raw: bytes | None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: datetime | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    file: str | None = None
    at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """Bytes as text where they are UTF-8, else under `<name>_base64`."""
        return {
            "id": self.id,
            "pipeline": self.pipeline,
            "node": self.node,
            "check": self.check,
            "reason": self.reason,
            **_readable("raw", self.raw),
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp and self.timestamp.isoformat(),
            **_readable("key", self.key),
            "headers": [{"key": key, **_readable("value", value)} for key, value in self.headers],
            "file": self.file,
            "at": self.at and self.at.isoformat(),
        }


@dataclass(frozen=True)
class Reach:
    """How places are reached: local files as they are, everything else through Spark, started when first needed."""

    storage: Callable[[str], Storage]
    spark: Callable[[], SparkSession]


@dataclass(frozen=True)
class Choice:
    """Which letters are meant; what is not given does not restrict."""

    node: str | None = None
    checks: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Whole ids or their beginnings."""

    def of(self, letters: pa.Table) -> pa.Table:
        import pyarrow.compute as pc

        if self.node is not None:
            letters = letters.filter(pc.equal(letters["node"], self.node))
        if self.checks:
            letters = letters.filter(pc.is_in(letters["check"], _strings(self.checks)))
        if self.ids:
            chosen = pc.is_in(letters["id"], _strings(self.ids))
            for beginning in self.ids:
                if len(beginning) < ID_LENGTH:
                    chosen = pc.or_(chosen, pc.starts_with(letters["id"], beginning))
            letters = letters.filter(chosen)
        return letters


@dataclass(frozen=True)
class Place:
    """Where the dead letters of one pipeline are. `strangers` are nodes of other pipelines that share the folder."""

    pipeline: Pipeline
    reach: Reach
    strangers: frozenset[str] = field(default_factory=frozenset)

    def read(self, columns: tuple[str, ...] | None = None) -> pa.Table:
        """Every letter, as a table of `columns`, all by default. Raises Fault."""
        import pyarrow as pa

        wanted = columns or tuple(arrow_schema().names)
        schema = pa.schema([arrow_schema().field(name) for name in wanted])
        tables = [table.select(wanted).cast(schema) for table in self._tables(wanted)]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        spec = self.pipeline.dead_letters
        if spec is None:
            return
        if isinstance(spec, KafkaAddress):
            yield _in_topic(spec)
            return
        path = getattr(spec, "path", None)
        if path is None:
            yield self._by_spark(lambda spark: spark.table(getattr(spec, "table", "")), columns)
            return
        storage = self.reach.storage(path)
        try:
            folders = [entry for entry in storage.entries(path) if entry.is_folder and entry.name[0] not in "._"]
        except OSError as error:
            raise _unreadable(path, error) from None
        for folder in folders:
            if folder.name not in self.strangers:
                yield self._in_folder(spec, join(path, folder.name), storage, columns)

    def _in_folder(self, spec: SinkSpec, folder: str, storage: Storage, columns: tuple[str, ...]) -> pa.Table:
        if not isinstance(spec, Files):
            return self._by_spark(lambda spark: spark.read.format(spec.type).load(folder), columns)
        if is_local(folder) and spec.format.type == "parquet" and not spec.partition_by:
            return _in_parquet(to_local(folder), storage, columns)
        options = given_options(spec.format)
        return self._by_spark(
            lambda spark: spark.read.format(spec.format.type).schema(SCHEMA).options(**options).load(folder), columns
        )

    def _by_spark(self, load: Callable[[SparkSession], DataFrame], columns: tuple[str, ...]) -> pa.Table:
        from pyspark.errors import PySparkException

        try:
            return load(self.reach.spark()).select(*columns).toArrow()
        except PySparkException as error:
            raise _unreadable(f"{self.pipeline.name}", str(error).splitlines()[0]) from None


def to_letters(table: pa.Table, pipeline: str) -> list[Letter]:
    return [
        Letter(**row, headers=tuple((header["key"], header["value"]) for header in headers or ()), pipeline=pipeline)
        for row in table.to_pylist()
        for headers in [row.pop("headers")]
    ]


def once_each(letters: list[Letter]) -> list[Letter]:
    """Without what was put aside a second time because it was read a second time, oldest first.

    A place in a topic holds one record. Of one file, records that are alike are put aside in one batch: what has the
    same id and another time was read again. Without an origin nothing tells the two apart, and all are kept.
    """
    first: dict[str, datetime | None] = {}
    kept, taken = [], set()
    for letter in sorted(letters, key=lambda letter: (letter.at is not None and letter.at.timestamp(), letter.id)):
        if letter.topic is not None:
            if letter.id in taken:
                continue
            taken.add(letter.id)
        elif letter.file is not None and first.setdefault(letter.id, letter.at) != letter.at:
            continue
        kept.append(letter)
    return kept


def arrow_schema() -> pa.Schema:
    import pyarrow as pa

    at = pa.timestamp("us", "UTC")
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.schema(
        [(name, pa.string()) for name in ("id", "node", "check", "reason")]
        + [("raw", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
        + [("timestamp", at), ("key", pa.binary()), ("headers", pa.list_(header)), ("file", pa.string()), ("at", at)]
    )


def _in_parquet(folder: Path, storage: Storage, columns: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = [*_logged(folder, storage), *_of_batches(folder)]
    # Without a zone: Spark's INT96 has none, and means UTC.
    naive = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field for field in arrow_schema()
    ]
    reading = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    try:
        found = ds.dataset(files, pa.schema(naive), ds.ParquetFileFormat(read_options=reading))
        return found.to_table(list(columns))
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(str(folder), error) from None


def _logged(folder: Path, storage: Storage) -> list[str]:
    """The files that the log of Spark's file sink names; others are those of a failed attempt."""
    entries = {entry.name: entry.path for entry in storage.entries(str(folder / _LOG))}
    compact = max((int(name.removesuffix(".compact")) for name in entries if name.endswith(".compact")), default=-1)
    logs = [f"{compact}.compact"] if compact >= 0 else []
    logs += sorted((name for name in entries if name.isdigit() and int(name) > compact), key=int)
    names: dict[str, bool] = {}
    for log in logs:
        for line in storage.read_text(entries[log]).splitlines():
            if line.startswith("{"):
                entry = json.loads(line)
                names[unquote(entry["path"]).rpartition("/")[2]] = entry.get("action") != "delete"
    # By name: the log has absolute paths, and a project may have been moved. A file that was deleted is gone.
    return [str(folder / name) for name, is_there in names.items() if is_there and (folder / name).is_file()]


def _of_batches(folder: Path) -> list[str]:
    """The files of rows that a sink refused, batch by batch."""
    return sorted(str(file) for file in folder.glob("query=*/batch=*/[!._]*"))


def _in_topic(spec: Any) -> pa.Table:
    import pyarrow as pa

    from penstock.connections.kafka_records import read

    names = arrow_schema().names
    rows = []
    for record in read(spec, spec.topic):
        try:
            told = json.loads(record.value or b"")
            told["raw"] = _bytes(told.get("raw"))
            told["key"] = _bytes(told.get("key"))
            told["headers"] = [
                {"key": one.get("key"), "value": _bytes(one.get("value"))} for one in told.get("headers") or ()
            ]
            for name in ("timestamp", "at"):
                told[name] = datetime.fromisoformat(told[name]) if told.get(name) else None
            if not told.get("id") or not told.get("node"):
                continue  # somebody else's record
        except (ValueError, TypeError, AttributeError):
            continue
        rows.append({name: told.get(name) for name in names})
    return pa.Table.from_pylist(rows, arrow_schema())


def _bytes(text: str | None) -> bytes | None:
    """Spark writes bytes into JSON as base64."""
    return None if text is None else base64.b64decode(text, validate=True)


def _readable(name: str, value: bytes | None) -> dict[str, str | None]:
    try:
        return {name: value if value is None else value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value or b"").decode("ascii")}


def _strings(values: tuple[str, ...]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.string())


def _unreadable(place: str, error: object) -> Fault:
    why = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
    return Fault(UNREADABLE, f"the dead letters in `{place}` cannot be read: {why}",
                 "mend it, or the rights to read it; Penstock writes Parquet, Delta, or JSON into Kafka")  # fmt: skip
