"""Mended records as new files of the folder that they came from, in the format of its source."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.dead_letters.bad_records import HIDDEN
from penstock.dead_letters.file_lines import first_line, local_file
from penstock.dead_letters.replay.homes import Home, RecordToReturn, columns_of, row_of
from penstock.dead_letters.replay.outcome import UNSENT
from penstock.engine.session import Engine
from penstock.notation.paths import braces_expanded, is_local, is_within, to_local
from penstock.problems import Fault
from penstock.sources.files import Files
from penstock.spec import given_options
from penstock.storage.storage import Storage, join

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PACKED: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress}
_ENDINGS = {"csv": ".csv", "json": ".json", "text": ".txt", "xml": ".xml", "parquet": ".parquet", "orc": ".orc"}
_TEXTUAL = ("csv", "json", "text", "xml")
_CORRUPT = "_penstock_corrupt"


class Unfit(Exception):
    """A record cannot be written in the format of its source; the text says why."""


@dataclass(frozen=True)
class Draft:
    """A file to be written: its records, and its content unless Spark has to make it."""

    path: str
    records: tuple[RecordToReturn, ...]
    content: bytes | None = None


def drafts(home: Home, records: Iterable[RecordToReturn]) -> Iterator[Draft | tuple[RecordToReturn, str]]:
    """The new files of one folder, and the records that cannot be in one, each with the reason. Nothing is written."""
    spec = _files(home)
    lots: dict[tuple[str, ...], list[RecordToReturn]] = {}
    for record in records:
        try:
            lots.setdefault(_lot(record, spec), []).append(record)
        except Unfit as unfit:
            yield record, str(unfit)
    for (kind, header, *_), lot in lots.items():
        path = _path(home, spec, lot)
        if not is_within(spec.path, path) or not _passes(spec.path_glob_filter, path):
            why = f"the source would not see a new file `{path.rpartition('/')[2]}` in the folder"
            yield from ((record, why) for record in lot)
        elif kind == "rows":
            yield Draft(path, tuple(lot))
        else:
            yield Draft(path, tuple(lot), _content(spec, header, [_text(record, spec) for record in lot], path))


def write(
    draft: Draft,
    storage: Storage,
    start: Callable[[], Engine],
    source: Files,
    note: Callable[[list[str]], None],
) -> list[str]:
    """Puts the file into its folder, whole or not at all; gives the ids of the records in it. Raises Fault.

    `note` gets these ids just before the file is there: those of records that do not fit the source are not in it.
    """
    ids = [record.letter.id for record in draft.records]
    try:
        if draft.content is None:
            return _write_rows(draft, source, start(), note)
        note(ids)
        if not is_local(draft.path):
            storage.write_text(draft.path, draft.content.decode("utf-8"))
        else:
            _write_whole(to_local(draft.path), draft.content)
    except OSError as error:
        folder = draft.path.rpartition("/")[0]
        raise Fault(UNSENT, f"no file can be written into `{folder}`: {error.strerror or error}",
                    "give this user the right to write there, or free some space", ("path",)) from None  # fmt: skip
    return ids


def _files(home: Home) -> Files:
    assert isinstance(home.source.spec, Files)  # noqa: S101 - for the type checker: only they have folders
    return home.source.spec


def _lot(record: RecordToReturn, spec: Files) -> tuple[str, ...]:
    """What records of one file have in common. Raises Unfit."""
    if record.raw is None:
        raise Unfit("there is nothing to write")
    if record.is_row and row_of(record.raw) is None:
        raise Unfit("it is not mended: it was a row, written as a JSON object, and is none any more")
    if _goes_through_spark(record, spec):
        if spec.lives and (row_of(record.raw) or {}).get(spec.rescued_column) is not None:
            raise Unfit(f"it has values in `{spec.rescued_column}`, which have no column to go back to")
        return ("rows", "")
    if spec.format.type not in _TEXTUAL:
        raise Unfit(f"only a row, as a JSON object, can be written as {spec.format.type}")
    _text(record, spec)
    alone = getattr(spec.format, "whole_text", None) or (
        spec.format.type == "json" and getattr(spec.format, "multi_line", None)
    )
    return ("text", _header(record, spec), *([f"{record.letter.id} {record.copy}"] if alone else []))


def _goes_through_spark(record: RecordToReturn, spec: Files) -> bool:
    if not record.is_row:
        return False
    dated = any(getattr(spec.format, f"{kind}_format", None) for kind in ("date", "timestamp", "timestamp_ntz"))
    return spec.format.type != "json" or (dated and not spec.lives)


def _text(record: RecordToReturn, spec: Files) -> str:
    try:
        text = (record.raw or b"").decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise Unfit("it is not UTF-8 text") from None
    many_lines = spec.format.type == "xml" or any(
        getattr(spec.format, key, None) for key in ("multi_line", "whole_text", "line_sep")
    )
    if many_lines or not ("\n" in text or "\r" in text):
        return text
    if spec.format.type == "json":
        return " ".join(text.splitlines())  # a string in JSON holds no line break
    raise Unfit("it holds a line break, and a line is a record")


def _header(record: RecordToReturn, spec: Files) -> str:
    """The first line of a CSV file that has one: that of the file the record was in, or the names of the schema."""
    if spec.format.type != "csv" or not getattr(spec.format, "header", None):
        return ""
    if (file := local_file(record.letter)) and (line := first_line(file, _encoding(spec))):
        return line
    names = [name for name in columns_of(spec.format.schema_) if f"/{name}=" not in (record.home.folder or "")]
    if spec.lives or not names or names == ["infer"]:
        raise Unfit("the file that it was in is gone, and with it the header")
    return (getattr(spec.format, "sep", None) or ",").join(names)


def _content(spec: Files, header: str, texts: list[str], path: str) -> bytes:
    end = getattr(spec.format, "line_sep", None) or "\n"
    lines = [header, *texts] if header else texts
    encoded = "".join(f"{line}{end}" for line in lines).encode(_encoding(spec))
    return _PACKED.get(Path(path).suffix, bytes)(encoded)


def _encoding(spec: Files) -> str:
    # The lines of a text source are UTF-8 whatever its `encoding` says.
    return "utf-8" if spec.format.type == "text" else getattr(spec.format, "encoding", None) or "utf-8"


def _path(home: Home, spec: Files, lot: list[RecordToReturn]) -> str:
    """A name that no file had before: a source passes over names that it has read."""
    names = "\n".join(sorted(f"{record.letter.id} {record.copy}" for record in lot))
    mark = hashlib.sha256(f"{names}\n{uuid4()}".encode()).hexdigest()[:16]
    return join(home.folder or spec.path, f"penstock-replay-{mark}{_ending(spec, lot)}")


def _ending(spec: Files, lot: list[RecordToReturn]) -> str:
    file = Path(lot[0].letter.file or "")
    plain = file.with_suffix("") if file.suffix in _PACKED else file
    ending = plain.suffix or _ENDINGS[spec.format.type]
    through_spark = _goes_through_spark(lot[0], spec)
    return ending + (file.suffix if file.suffix in _PACKED and not through_spark else "")


def _passes(pattern: str | None, path: str) -> bool:
    name = path.rpartition("/")[2]
    return pattern is None or any(fnmatchcase(name, one) for one in braces_expanded(pattern))


def _write_whole(file: Path, content: bytes) -> None:
    draft = file.with_name(f".{file.name}.tmp")
    try:
        with draft.open("wb") as open_file:
            open_file.write(content)
            open_file.flush()
            os.fsync(open_file.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _write_rows(draft: Draft, source: Files, engine: Engine, note: Callable[[list[str]], None]) -> list[str]:
    """Spark writes the rows in the format of the source, into a folder that no source sees; then the file is moved."""
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import col, from_json

    folder, _, name = draft.path.rpartition("/")
    hidden = join(folder, f".{name}")
    storage = engine.storage(folder)
    session = engine.session(source.session_settings)
    try:
        schema = _schema(source.load(session).schema, source, folder)
        rows = session.createDataFrame(
            [(record.letter.id, (record.raw or b"").decode("utf-8")) for record in draft.records],
            "id STRING, raw STRING",
        )
        read = rows.select("id", from_json("raw", schema, {"columnNameOfCorruptRecord": _CORRUPT}).alias("row"))
        good = read.where(col("row").isNotNull() & col("row")[_CORRUPT].isNull())
        ids = [row.id for row in good.select("id").collect()]
        if not ids:
            return []
        shaped = good.select("row.*").drop(_CORRUPT).coalesce(1)
        shaped.write.format(source.format.type).options(**given_options(source.format)).save(hidden)
    except PySparkException as error:
        raise Fault(UNSENT, f"the rows cannot be written as {source.format.type}: {str(error).splitlines()[0]}",
                    "mend the records, or the source's format", ("format",)) from None  # fmt: skip
    note(ids)
    for entry in storage.entries(hidden):
        if entry.name.startswith("part-"):
            storage.rename(entry.path, draft.path)
    if is_local(hidden):
        shutil.rmtree(to_local(hidden))
    return ids


def _schema(schema: StructType, source: Files, folder: str) -> StructType:
    """The columns that a file of the source holds, and one for the text of what does not fit them."""
    from pyspark.sql.types import StringType, StructType

    left_out = {HIDDEN, source.rescued_column if source.lives else HIDDEN}
    fields = [field for field in schema.fields if field.name not in left_out and f"/{field.name}=" not in f"{folder}/"]
    return StructType(fields).add(_CORRUPT, StringType())
