"""Avro messages: plain, or in the wire format of a schema registry (a 0, the schema's id in 4 bytes, the body)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock import spark_internals
from penstock.formats.messages import Decoding, RegistrySubject, body_of, not_framed
from penstock.formats.messages_registry import Registered, Registry, Subjects
from penstock.notation.paths import PathText
from penstock.notation.sql_text import quoted
from penstock.problems import Fault
from penstock.spec import Part

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DECODED = "_penstock_decoded"
_LARGEST = {"bytes": 64 * 1024 * 1024, "string": 64 * 1024 * 1024, "collectionItems": 10_000_000}
_FRAME_BYTES = 5
_UNKNOWN = "schema id {} is not known"


class _AvroSchema(Part):
    """A schema given as text or in a file."""

    schema_: str | None = Field(None, alias="schema", description="The Avro schema, as JSON text.")
    schema_file: PathText | None = Field(None, description="A file with the Avro schema, in place of `schema`.")
    registry: Registry | None = Field(
        None, description="A schema registry: messages carry the id of the schema that they were written with."
    )

    @model_validator(mode="after")
    def _one_schema(self) -> Self:
        if self.schema_ is not None and self.schema_file is not None:
            raise PydanticCustomError("message", "give `schema` or `schema_file`, not both")
        if self.schema_ is not None and "${" not in self.schema_:
            try:
                json.loads(self.schema_)
            except ValueError as error:
                raise PydanticCustomError("message", "`schema` is no Avro schema: it is not JSON ({error})",
                                          {"error": str(error)}) from None  # fmt: skip
        return self

    def given_schema(self) -> str | None:
        """The schema that the user gave. Raises Fault."""
        if self.schema_file is None:
            return self.schema_
        try:
            text = Path(self.schema_file).read_text(encoding="utf-8")
            json.loads(text)
        except (OSError, ValueError) as error:
            raise Fault("REGISTRY003", f"`{self.schema_file}` holds no Avro schema: {error}",
                        "name a file with an Avro schema in JSON", ("format", "schema_file")) from None  # fmt: skip
        return text


class AvroMessageRead(_AvroSchema):
    """Columns from the fields of an Avro record. Bytes that do not fit the schema make the record bad.

    - With `registry`, each message is read with the schema that it was written with, and resolved to `schema` by
      Avro's own rules, or to the newest one of the subject. The schemas are fetched when the query starts: a message
      of one that was registered later is bad. With `on_bad_record: fail` the query then fetches them anew and goes on.
    """

    type: Literal["avro"] = "avro"

    example: ClassVar[str] = "{type: avro, registry: {url: 'http://localhost:8081'}}"

    @model_validator(mode="after")
    def _some_schema(self) -> Self:
        if self.schema_ is None and self.schema_file is None and self.registry is None:
            raise PydanticCustomError("message", "Avro cannot be read without `schema`, `schema_file` or `registry`")
        return self

    def decoding(self, data: Column, subject: RegistrySubject) -> Decoding:
        from pyspark.sql.avro.functions import from_avro
        from pyspark.sql.functions import length, lit, when

        _limit_lengths()
        if self.registry is None:
            reader = str(self.given_schema())
            parsed = from_avro(data, reader, _options(reader))
            empty = when(length(data) == lit(0), lit("the value is empty"))
            return _decoding(parsed, reader, lambda: empty.otherwise(lit("not Avro of this schema")))
        known = _known(self.registry, subject)
        reader = self.given_schema() or _newest(known)
        ids = _by_id(known)
        by_id = {number: from_avro(body_of(data), one.schema, _options(reader)) for number, one in sorted(ids.items())}
        return _decoding(_chosen(data, by_id), reader, lambda: _framed_reason(data, sorted(ids)))

    def knows(self, number: int, subject: RegistrySubject) -> bool:
        """Would a query that starts now know the schema of this id?"""
        if self.registry is None:
            return False
        try:
            return number in _by_id(_known(self.registry, subject))
        except Fault:
            return False  # it cannot be asked now: the failure itself says more


class AvroMessageWrite(_AvroSchema):
    """An Avro record with a field for each column; each may be NULL unless `schema` says otherwise.

    - With `registry`, the schema is registered under the topic's subject when the query starts, if it is new there.
    """

    type: Literal["avro"] = "avro"
    record_name: str = Field("record", description="The name of the record, where no schema is given.")

    example: ClassVar[str] = "{type: avro, registry: {url: 'http://localhost:8081'}}"

    def check(self, rows: DataFrame, columns: Sequence[str]) -> None:
        schema = self.given_schema()
        if schema is not None and not _fields(schema):
            raise Fault("KAFKA005", "the Avro schema is not one of a record with fields",
                        "give a schema of `type: record`", ("format",))  # fmt: skip
        wanted = {field["name"] for field in _fields(schema) if "default" not in field}
        if missing := sorted(wanted - set(columns)):
            raise Fault("KAFKA005", f"the Avro schema has a field `{missing[0]}`, and the rows have no such column",
                        "select it in the step, or give the field a default", ("format",))  # fmt: skip

    def encoded(self, rows: DataFrame, columns: Sequence[str], subject: RegistrySubject) -> Column:
        from pyspark.sql.avro.functions import to_avro
        from pyspark.sql.functions import col, concat, lit, struct, when

        schema = self.given_schema()
        if schema is not None:
            columns = [field["name"] for field in _fields(schema) if field["name"] in columns]
        else:
            schema = spark_internals.avro_schema(rows.select(*(quoted(name) for name in columns)), self.record_name)
        body = to_avro(struct(*(col(quoted(name)) for name in columns)), schema)
        if self.registry is None:
            return body
        number = _registered(self.registry, subject, schema)
        return when(body.isNotNull(), concat(lit(_frame(number)), body))


def _known(registry: Registry, subject: RegistrySubject) -> dict[str, list[Registered]]:
    """The schemas of each subject that the messages may be of; Spark cannot read one that refers to others."""
    subjects = Subjects(registry)
    if registry.subject is not None:
        names = [registry.subject]
    elif subject.topic_pattern is not None:
        ending = f"-{subject.part}"
        every = [name for name in subjects.names() if name.endswith(ending)]
        names = [name for name in every if re.fullmatch(subject.topic_pattern, name.removesuffix(ending))]
    else:
        names = [f"{topic}-{subject.part}" for topic in subject.topics]
    known = {name: [one for one in subjects.versions(name) if not one.has_references] for name in names}
    if not any(known.values()):
        raise Fault(
            "REGISTRY002", f"the schema registry at {registry.url} has no schema for these topics that stands alone",
            "name the subject: `subject:`; its schemas may not refer to other schemas", ("format", "registry"),
        )  # fmt: skip
    return known


def _fields(schema: str | None) -> list[dict[str, Any]]:
    """The fields of a record's schema."""
    data: Any = json.loads(schema or "null")
    return list(data.get("fields", [])) if isinstance(data, dict) else []


def _by_id(known: dict[str, list[Registered]]) -> dict[int, Registered]:
    return {one.id: one for schemas in known.values() for one in schemas}


def _registered(registry: Registry, subject: RegistrySubject, schema: str) -> int:
    name = registry.subject
    if name is None and len(subject.topics) != 1:
        raise Fault("REGISTRY002", "rows go to several topics, so nothing says which subject their schema is of",
                    "name it: `subject:`", ("format", "registry"))  # fmt: skip
    return _id_of(registry, name or f"{subject.topics[0]}-{subject.part}", schema)


@cache
def _id_of(registry: Registry, subject: str, schema: str) -> int:
    # Asked for each batch otherwise. An id never changes.
    return Subjects(registry).register(subject, schema)


def _limit_lengths() -> None:
    """Lets Avro refuse a value that claims to be longer than any message is.

    It takes memory for a value before it reads it. So a few bytes of garbage could fill the memory and end Spark.
    """
    from pyspark.sql import SparkSession

    spark_internals.limit_avro_lengths(SparkSession.active(), _LARGEST)


def _options(reader: str) -> dict[str, str]:
    """Resolved to the reader's schema with one field more, which is there if and only if the bytes were decoded.

    Spark gives a record of NULLs for bytes that do not fit: a good record may look the same.
    """
    data: Any = json.loads(reader)
    if isinstance(data, dict) and data.get("type") == "record":
        data["fields"] = [*data["fields"], {"name": _DECODED, "type": "boolean", "default": True}]
    return {"mode": "PERMISSIVE", "avroSchema": json.dumps(data)}


def _decoding(parsed: Column, reader: str, reason: Any) -> Decoding:
    from pyspark.sql.functions import coalesce, lit

    data: Any = json.loads(reader)
    if not isinstance(data, dict) or data.get("type") != "record":
        return Decoding(
            parsed,
            lambda parsed: [parsed.alias("value")],
            lambda parsed: parsed.isNotNull(),
            lambda parsed: reason(),
            is_record=False,
        )
    names = [field["name"] for field in data["fields"]]
    return Decoding(
        parsed,
        lambda parsed: [parsed[name].alias(name) for name in names],
        lambda parsed: coalesce(parsed[_DECODED], lit(False)),
        lambda parsed: reason(),
    )


def _chosen(data: Column, by_id: dict[int, Column]) -> Column:
    """The decoding that belongs to the id of a message; the bytes are compared, not counted, for each message."""
    from pyspark.sql.functions import lit, substring, when

    frame = substring(data, 1, 5)
    (first, decoded), *others = by_id.items()
    chosen = when(frame == lit(_frame(first)), decoded)
    for number, decoded in others:
        chosen = chosen.when(frame == lit(_frame(number)), decoded)
    return chosen


def _framed_reason(data: Column, ids: list[int]) -> Column:
    from pyspark.sql.functions import concat, conv, hex, lit, substring, when  # noqa: A004 - Spark's name for it

    number = conv(hex(substring(data, 2, 4)), 16, 10)
    before, after = _UNKNOWN.split("{}")
    known = ", ".join(map(str, ids))
    unknown = concat(lit(before), number, lit(f"{after}: the registry had {known} when the query started"))
    return (
        when(*not_framed(data))
        .when(~number.isin([str(one) for one in ids]), unknown)
        .otherwise(concat(lit("not Avro of schema id "), number))
    )


def _newest(known: dict[str, list[Registered]]) -> str:
    newest = {name: schemas[-1].schema for name, schemas in known.items() if schemas}
    if len({json.dumps(json.loads(schema), sort_keys=True) for schema in newest.values()}) > 1:
        raise Fault("REGISTRY002", f"the newest schemas of {', '.join(sorted(newest))} differ",
                    "give the one that all are resolved to: `schema:` or `schema_file:`", ("format",))  # fmt: skip
    return next(iter(newest.values()))


def _frame(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def schema_id(data: bytes | None) -> int | None:
    """The id in front of a message, if it is in the wire format of a registry."""
    if data is None or len(data) < _FRAME_BYTES or data[0] != 0:
        return None
    return int.from_bytes(data[1:_FRAME_BYTES], "big")
