"""Where a dead letter came from, and so where it goes back to."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.connections.kafka import KafkaAddress
from penstock.dead_letters.bad_records import DECODED
from penstock.dead_letters.letters import Letter
from penstock.notation.paths import has_glob, is_local, is_within, to_local
from penstock.pipeline.model import Pipeline, Source
from penstock.sources.files import Files

_NESTING = {"LT": 1, "L_PAREN": 1, "GT": -1, "R_PAREN": -1}
"""The tokens that open and close a type inside of another."""


@dataclass(frozen=True)
class Home:
    """The source that a record goes back to, and the topic or folder of it."""

    source: Source
    topic: str | None = None
    folder: str | None = None

    def __str__(self) -> str:
        return f"topic {self.topic}" if self.topic is not None else f"folder {self.folder}"


class Homeless(Exception):
    """A letter cannot be put back; the text says why."""


@dataclass(frozen=True)
class RecordToReturn:
    """A letter on its way back, with the bytes that are sent: its own, or what they were mended to."""

    letter: Letter
    raw: bytes | None
    home: Home
    copy: int = 0
    """Which one it is of several letters that are alike."""

    @property
    def is_mended(self) -> bool:
        return self.raw != self.letter.raw

    @property
    def is_row(self) -> bool:
        """Is it a row in the columns of its source, as a JSON object, and not the text of the file?"""
        return self.home.folder is not None and self.letter.check != DECODED


def home_of(letter: Letter, pipeline: Pipeline, is_mended: bool) -> Home:
    """Raises Homeless."""
    node = pipeline.nodes.get(letter.node)
    if node is None:
        if any(sink.name == letter.node for sink in pipeline.sinks):
            raise Homeless(f"the sink `{letter.node}` refused it, and nothing tells which record the row was made from")
        raise Homeless(f"the pipeline has no `{letter.node}` any more")
    sources = pipeline.sources_of(letter.node)
    if letter.topic is not None:
        return Home(_of_topic(letter.topic, sources), topic=letter.topic)
    if letter.file is not None:
        if not isinstance(node, Source) and not is_mended:
            # A file's record is not carried along with the rows that are made of it.
            raise Homeless(
                f"it is a row that `{letter.node}` made, not the record of the file; export it, write the record in the"
                " columns of the source, and replay that"
            )
        return Home(_of_file(letter.file, sources), folder=_folder(letter.file))
    if not isinstance(node, Source):
        raise Homeless(f"nothing tells which record the row of `{letter.node}` was made from")
    if isinstance(node.spec, Files):
        if has_glob(node.spec.path):
            raise Homeless(f"`{node.spec.path}` is no single folder, and nothing tells which file the row was in")
        return Home(node, folder=node.spec.path)
    raise Homeless(f"nothing can be put back into a source of type `{node.spec.type}`")


def _of_topic(topic: str, sources: tuple[Source, ...]) -> Source:
    found = [source for source in sources if isinstance(source.spec, KafkaAddress)]
    reading = [source for source in found if _reads(source, topic)]
    if not (reading or found):
        raise Homeless(f"no source reads the topic `{topic}` any more")
    return (reading or found)[0]


def _reads(source: Source, topic: str) -> bool:
    spec = source.spec
    pattern = getattr(spec, "topic_pattern", None)
    named = (*getattr(spec, "topics", ()), *getattr(spec, "assign", ()))
    return topic in named or bool(pattern and re.fullmatch(pattern, topic))


@cache
def _folder(file: str) -> str:
    plain = str(to_local(unquote(file))) if is_local(file) else unquote(file)
    return plain.rpartition("/")[0]


def _of_file(file: str, sources: tuple[Source, ...]) -> Source:
    for source in sources:
        if isinstance(source.spec, Files) and is_within(source.spec.path, unquote(file)):
            return source
    raise Homeless(f"no source reads the folder of `{unquote(file)}` any more")


def event_time_of(record: RecordToReturn, column: str) -> datetime | None:
    """The time in a column of the record, where that can be told without Spark: JSON by name, CSV by position."""
    form = getattr(record.home.source.spec, "format", None)
    if record.raw is None or form is None or getattr(form, "timestamp_format", None):
        return None
    kind = "json" if record.is_row else form.type
    if kind == "json":
        value = (row_of(record.raw) or {}).get(column)
    elif kind == "csv":
        value = _at_position(record.raw, column, form)
    else:
        return None
    return _time(value, getattr(form, "time_zone", None))


def columns_of(ddl: str | None) -> list[str]:
    """The names of the columns of a DDL text, in order; none of a text that Spark cannot read either."""
    from sqlglot import tokenize
    from sqlglot.errors import TokenError

    try:
        tokens = tokenize(ddl or "", read="spark")
    except TokenError:
        return []
    names, depth, is_name = [], 0, True
    for token in tokens:
        if is_name:
            names.append(token.text)
        depth += _NESTING.get(token.token_type.name, 0)
        is_name = token.token_type.name == "COMMA" and not depth
    return names


def _at_position(raw: bytes, column: str, form: object) -> object:
    names = [name.lower() for name in columns_of(getattr(form, "schema_", None))]
    sep = getattr(form, "sep", None) or ","
    if column.lower() not in names or len(sep) != 1:
        return None
    try:
        values = next(csv.reader([raw.decode("utf-8")], delimiter=sep, quotechar=getattr(form, "quote", None) or '"'))
        return values[names.index(column.lower())]
    except (UnicodeDecodeError, csv.Error, StopIteration, IndexError):
        return None


def row_of(raw: bytes | None) -> dict[str, object] | None:
    """A JSON object, if it is one."""
    try:
        told = json.loads(raw or b"")
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _time(value: object, zone: str | None) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        if not isinstance(value, str):
            return datetime.fromtimestamp(value, UTC)  # Spark's JSON takes a number for seconds
        moment = datetime.fromisoformat(value.strip())
        return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone) if zone else UTC)
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        return None
