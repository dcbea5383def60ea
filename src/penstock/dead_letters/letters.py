"""Dead letters, read back from the place where a pipeline puts them. Letters in local Parquet need no JVM."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import unquote

from penstock.connections.kafka import KafkaAddress
from penstock.dead_letters.bad_records import ORIGIN_SCHEMA
from penstock.notation.paths import is_local, to_local
from penstock.pipeline.model import Pipeline
from penstock.problems import Fault
from penstock.sinks.files import Files
from penstock.sinks.sink import SinkSpec
from penstock.spec import given_options
from penstock.storage.storage import Storage, join

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = f"id STRING, node STRING, check STRING, reason STRING, raw BINARY, {ORIGIN_SCHEMA}, at TIMESTAMP"
"""The columns of a dead letter, as Spark writes them."""
UNREADABLE = "DEADLETTER003"
ID_LENGTH = 64
_LOG = "_spark_metadata"
_NEVER = datetime.min.replace(tzinfo=UTC)
_EPOCH = datetime.fromtimestamp(0, UTC)


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


class Brief(NamedTuple):
    """As much of a letter as is needed to count it."""

    id: str
    node: str
    check: str
    reason: str | None
    topic: str | None
    file: str | None
    at: datetime | None


L = TypeVar("L", Letter, Brief)


@dataclass(frozen=True)
class Reach:
    """How places are reached: local files as they are, everything else through Spark, started when first needed."""

    storage: Callable[[str], Storage]
    spark: Callable[[], SparkSession]


@dataclass(frozen=True)
class LetterFilter:
    """Which letters are meant; what is not given does not restrict."""

    node: str | None = None
    checks: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Whole ids or their beginnings."""

    def of(self, letters: pa.Table) -> pa.Table:
        if self == LetterFilter():
            return letters
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.node is not None:
            letters = letters.filter(pc.equal(letters["node"], self.node))
        if self.checks:
            letters = letters.filter(_any_of([pc.equal(letters["check"], check) for check in self.checks]))
        if self.ids:
            whole = {id_ for id_ in self.ids if len(id_) == ID_LENGTH}
            found = [pc.starts_with(letters["id"], one) for one in self.ids if one not in whole]
            if whole:
                found.append(pc.is_in(letters["id"], pa.array(sorted(whole), pa.string())))
            letters = letters.filter(_any_of(found))
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
        return _joined(tables, schema)

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
    columns = {name: _values(table, name) for name in table.column_names}
    headers = ([(one["key"], one["value"]) for one in each or ()] for each in columns.pop("headers"))
    return [
        Letter(pipeline=pipeline, headers=tuple(each), **dict(zip(columns, row, strict=True)))
        for row, each in zip(zip(*columns.values(), strict=True), headers, strict=True)
    ]


def to_briefs(table: pa.Table) -> list[Brief]:
    return [Brief(*row) for row in zip(*(_values(table, name) for name in Brief._fields), strict=True)]


def _values(table: pa.Table, name: str) -> list[Any]:
    import pyarrow as pa

    if not pa.types.is_timestamp(table.schema.field(name).type):
        return list(table[name].to_pylist())
    # Through numbers: Arrow imports pandas to make moments.
    numbers = table[name].cast(pa.int64()).to_pylist()
    return [None if one is None else _EPOCH + timedelta(microseconds=one) for one in numbers]


def once_each(letters: Iterable[L]) -> list[L]:
    """Without what was put aside a second time because it was read a second time, oldest first.

    A place in a topic holds one record. Of one file, records that are alike are put aside in one batch: what has the
    same id and another time was read again. Without an origin nothing tells the two apart, and all are kept.
    """
    first: dict[str, datetime | None] = {}
    kept = []
    for letter in sorted(letters, key=lambda letter: (letter.at or _NEVER, letter.id)):
        is_first = letter.id not in first
        at = first.setdefault(letter.id, letter.at)
        read_again = letter.topic is not None or (letter.file is not None and letter.at != at)
        if is_first or not read_again:
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

    files = [*_logged(folder, storage), *_of_batches(folder)]
    schema = pa.schema([arrow_schema().field(name) for name in columns])

    def read(file: str) -> pa.Table:
        # File by file: Arrow's datasets, and `pa.array`, would import pandas. That takes longer than all the rest.
        from pyarrow.parquet import ParquetFile

        with ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
            return opened.read(list(columns)).select(list(columns)).cast(schema)

    try:
        with ThreadPoolExecutor(max_workers=8) as threads:
            return pa.Table.from_batches(
                [batch for table in threads.map(read, files) for batch in table.to_batches()], schema
            )
    except (OSError, KeyError, pa.ArrowException) as error:
        raise _unreadable(str(folder), error) from None


def _joined(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([batch for table in tables for batch in table.to_batches()], schema)


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


def _any_of(conditions: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return reduce(pc.or_, conditions)


def _unreadable(place: str, error: object) -> Fault:
    why = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
    return Fault(UNREADABLE, f"the dead letters in `{place}` cannot be read: {why}",
                 "mend it, or the rights to read it; Penstock writes Parquet, Delta, or JSON into Kafka")  # fmt: skip
