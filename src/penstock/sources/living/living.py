"""A folder's living schema at work: which version a query reads by, and what becomes of a batch that is wider.

No restart can repeat for ever: a batch is refused only for columns that its version lacks, every restart follows a new
version that has them, and where nothing new is found the query ends.
"""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from penstock.crash_points import reached
from penstock.facts.failure import Failure
from penstock.notation.paths import is_within
from penstock.problems import Fault
from penstock.sources.living import csv_rows, json_rows, parquet_rows, pending, schemas, versions
from penstock.sources.living.found import Found, NewColumns, all_files, folder_columns, sample
from penstock.sources.living.versions import Version
from penstock.storage.batch_log import newest_batch
from penstock.storage.storage import join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.sources.files import Files

_STATE_REFUSED = re.compile(r"STATE_STORE_\w*SCHEMA\w*NOT_COMPATIBLE|STATE_STORE_\w*SCHEMA_EVOLUTION\w*")
_SHOWN = 10


class _Format(Protocol):
    """What a living schema needs of a format."""

    def rows(self, source: Files, spark: SparkSession, version: Version) -> DataFrame: ...
    def look(self, source: Files, spark: SparkSession, files: list[str], version: Version) -> Found: ...
    def infer(self, source: Files, spark: SparkSession, files: list[str]) -> Found: ...


def _format(source: Files) -> _Format:
    formats: dict[str, _Format] = {"csv": csv_rows, "json": json_rows, "parquet": parquet_rows}
    return formats[source.format.type]


def load(source: Files, spark: SparkSession) -> DataFrame:
    """The stream in the columns of the newest version. The first query makes the first version; the others use it."""
    version = current(source, spark)
    # The session is the query's own: `before_batch` finds there by which version the query reads.
    spark.conf.set(_setting(source), version.version)
    return _format(source).rows(source, spark, version)


def current(source: Files, spark: SparkSession) -> Version:
    """The newest version, with the hints of today. Raises Fault if there is nothing to infer one from."""
    location = _location(source)
    storage = versions.storage_of(location, spark)
    newest = versions.newest(storage, location) or versions.keep(storage, location, _first(source, spark))
    hints, before = _hints(source), schemas.from_json(newest.schema)
    after = schemas.hinted(before, hints)
    if after == before:
        return newest
    read_as = schemas.hinted(schemas.from_json(newest.read_as), hints).jsonValue() if newest.read_as else None
    return versions.keep(storage, location, replace(_next(newest, after, "the hints have changed"), read_as=read_as))


def before_batch(source: Files, spark: SparkSession, checkpoint: str, batch: int) -> None:
    """Refuses a batch whose files hold what the query's version lacks. `recover` then mends it, or tells why not."""
    storage = versions.storage_of(checkpoint, spark)
    files = pending.files_of(storage, checkpoint, batch, source.path)
    if not files:
        return
    location = _location(source)
    number = spark.conf.get(_setting(source), None)
    version = versions.numbered(versions.storage_of(location, spark), location, int(number)) if number else None
    version = version or current(source, spark)
    found = _format(source).look(source, spark, files, version)
    ignored = source.on_new_columns == "ignore"
    if found.unfit or found.width > version.width or (found.new and not ignored):
        raise NewColumns(source, version, found.new or {one[0]: one[3] for one in found.unfit})


def recover(source: Files, failure: Failure, spark: SparkSession, checkpoint: str) -> bool:
    """After a batch was refused: keeps the next version, and lets the query start again. Raises Fault if it cannot."""
    location = _location(source)
    newest = versions.newest(versions.storage_of(location, spark), location)
    if newest is None:
        return False
    if _STATE_REFUSED.fullmatch(failure.condition):
        _tell_state(source, newest)
    refused = failure.columns
    if refused is None or (refused.types and source.format.type != "parquet"):
        return False
    if refused.location != location if refused.location else not is_within(source.path, unquote(refused.file)):
        return False  # another source's
    if refused.location and refused.version < newest.version:
        return True  # another query of this folder has kept what is new
    storage = versions.storage_of(checkpoint, spark)
    batch = newest_batch(storage, join(checkpoint, "offsets"))  # the one that failed
    files = pending.files_of(storage, checkpoint, batch, source.path) if batch is not None else []
    found = _format(source).look(source, spark, files, newest)
    _tell(source, found)
    wider = _wider(source, newest, found, len(files))
    if wider is None:
        raise Fault(
            "SCHEMA003", f"a batch was refused for new columns, but none are in its {len(files)} files",
            "run again; if it is refused again, `on_new_columns: rescue` lets it pass", ("on_new_columns",),
        )  # fmt: skip
    versions.keep(versions.storage_of(location, spark), location, wider)
    reached("after_schema_version")
    return True


def _wider(source: Files, newest: Version, found: Found, files: int) -> Version | None:
    """The version after this one; None if nothing would differ."""
    schema = schemas.from_json(newest.schema)
    read_as = schemas.from_json(newest.read_as or newest.schema)
    after, wide = schema, read_as
    if source.on_new_columns == "add":
        after = wide = schemas.widened(schema, found.new, found.schema)
    elif source.on_new_columns == "rescue" and source.format.type == "parquet":
        wide = schemas.widened(read_as, found.new, found.schema)
    width = max(newest.width, found.width)
    if (after, wide, width) == (schema, read_as, newest.width):
        return None
    new = schemas.new_paths(wide, read_as)
    reason = f"new: {', '.join(new)}" if new else f"a line of {width} values"
    told = _next(newest, after, reason)
    return replace(told, files=files, width=width, read_as=None if wide == after else wide.jsonValue())


def _setting(source: Files) -> str:
    return f"spark.penstock.schema.{sha256(_location(source).encode()).hexdigest()[:16]}"


def _first(source: Files, spark: SparkSession) -> Version:
    from pyspark.sql.types import StructType

    hints = _hints(source)
    files = all_files(source, spark)
    looked_at = sample(files, source.sample_files)
    if not looked_at and not hints.fields:
        raise Fault(
            "SCHEMA001", f"there is no file in {source.path} to infer a schema from",
            "put a file there, or name the columns that you are sure of: `schema_hints: 'id BIGINT, at TIMESTAMP'`",
            ("path",),
        )  # fmt: skip
    found = _format(source).infer(source, spark, looked_at) if looked_at else Found(StructType([]))
    schema = schemas.hinted(schemas.without_twins(found.schema), hints)
    partitions = {name.lower() for name in folder_columns(source, looked_at)}
    schema = StructType([field for field in schema.fields if field.name.lower() not in partitions])
    if not schema.fields:
        raise Fault(
            "SCHEMA001", f"the {len(looked_at)} files looked at in {source.path} hold no column",
            "mend or remove them, or name the columns: `schema_hints: 'id BIGINT, at TIMESTAMP'`", ("path",),
        )  # fmt: skip
    reason = f"inferred from {len(looked_at)} of {len(files)} files" if looked_at else "the hints alone"
    width = found.width or len(schema.fields)
    first = Version(1, schema.jsonValue(), reason, versions.now(), len(looked_at), width)
    if source.format.type == "parquet" and looked_at:
        _tell(source, parquet_rows.look(source, spark, looked_at, first))
    return first


def _next(version: Version, schema: StructType, reason: str) -> Version:
    return replace(version, version=version.version + 1, schema=schema.jsonValue(), reason=reason, at=versions.now())


def _location(source: Files) -> str:
    if source.schema_location is None:
        raise Fault(
            "SCHEMA006", "there is no folder to keep the schema in",
            "write `schema_location:` with a folder that outlives this run", versions.KEYS,
        )  # fmt: skip
    return source.schema_location


def _hints(source: Files) -> StructType:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if not source.schema_hints:
        return StructType([])
    try:
        hints: StructType = schemas.without_twins(StructType.fromDDL(source.schema_hints))
    except PySparkException as error:
        raise Fault(
            "SCHEMA001", f"`schema_hints` are not columns with their types: {_first_line(error)}",
            "write them as DDL, such as `amount DECIMAL(10,2), at TIMESTAMP`", ("schema_hints",),
        ) from None  # fmt: skip
    if source.format.type == "csv":
        csv_rows.require_plain(hints)
    return hints


def _tell(source: Files, found: Found) -> None:
    """Raises Fault if what was found is not to be mended."""
    if found.unfit:
        path, theirs, ours, file = found.unfit[0]
        raise Fault(
            "SCHEMA005", f"`{path}` is {theirs.upper()} in {file}, where the schema has {ours.upper()}",
            f"write the file anew with `{path}` as {ours.upper()}, move it away, or hint at a type that holds both",
            ("path",),
        )  # fmt: skip
    if source.on_new_columns == "fail" and found.new:
        shown = ", ".join(f"`{path}`" for path in sorted(found.new)[:_SHOWN])
        more = f" and {len(found.new) - _SHOWN} more" if len(found.new) > _SHOWN else ""
        file = found.new[min(found.new)]
        raise Fault(
            "SCHEMA002", f"new columns have come: {shown}{more}, in {file} for one",
            "let them in with `on_new_columns: add`, keep them aside with `rescue`, or mend the files",
            ("on_new_columns",),
        )  # fmt: skip


def _tell_state(source: Files, newest: Version) -> None:
    if source.on_new_columns == "add" and newest.version > 1:
        raise Fault(
            "SCHEMA004", f"the query's state cannot take the new columns of schema version {newest.version}"
            f" ({newest.reason})",
            "name the keys in `dropDuplicates` and the columns in the aggregation, so that new columns stay out of the"
            " state, and begin a new checkpoint; or write `on_new_columns: rescue`",
            ("on_new_columns",),
        )  # fmt: skip


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
