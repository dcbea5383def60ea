"""Messages in one format: bytes that become columns, and columns that become bytes.

Decoding never fails. What is expensive stands in one expression, evaluated once for each message; whether a message is
good is a cheap question about its result; why it is bad is worked out for bad messages alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, Self, cast

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.formats import json_limits
from penstock.formats.format import ReadFormat, WriteFormat
from penstock.formats.textual import DateTimes, LenientDateTimes
from penstock.notation.sql_text import quoted
from penstock.problems import Fault
from penstock.spec import Part, given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_CORRUPT = "_penstock_corrupt"
_SHOWN_CHARACTERS = 60
_OURS = ("mode", "columnnameofcorruptrecord")


@dataclass(frozen=True)
class RegistrySubject:
    """What the messages are of: the topics that they come from or go to, and whether they are keys or values."""

    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    part: Literal["key", "value"] = "value"


@dataclass(frozen=True)
class Decoding:
    """How bytes become columns. Each function takes what `parsed` gave."""

    parsed: Column
    columns: Callable[[Column], Sequence[Column]]
    """The user's columns, named."""
    fits: Callable[[Column], Column]
    """Is the message good? Cheap, never NULL. Bytes that are not there are not asked about."""
    reason: Callable[[Column], Column]
    """Why a message that does not fit is bad; never NULL."""
    is_cheap: bool = False
    """May `parsed` be evaluated more than once?"""
    is_record: bool = True
    """Or is a message one value, and `columns` gives that alone?"""


class MessageRead(Protocol):
    """A format that messages are decoded from."""

    type: str

    def decoding(self, data: Column, subject: RegistrySubject) -> Decoding:
        """How `data`, BINARY, is decoded. Raises Fault if something that is needed for it cannot be had."""
        ...


class MessageWrite(Protocol):
    """A format that messages are encoded in."""

    type: str

    def check(self, rows: DataFrame, columns: Sequence[str]) -> None:
        """Raises Fault if these columns cannot be encoded."""
        ...

    def encoded(self, rows: DataFrame, columns: Sequence[str], subject: RegistrySubject) -> Column:
        """The columns as one of type BINARY."""
        ...


class _WithSchema(ReadFormat):
    """A text format whose columns are told by a schema."""

    # Required here, unlike in a format of files: a stream of messages is never read to infer one.
    schema_: str = Field(alias="schema", min_length=1, description="Columns and types as DDL: `id BIGINT, at DATE`.")

    @model_validator(mode="after")
    def _bad_ones_are_found(self) -> Self:
        for option in self.spark_options:
            if option.lower() in _OURS:
                raise PydanticCustomError(
                    "message", "`{option}` is not for `spark_options`: `on_bad_record` says what bad ones become",
                    {"option": option},
                )  # fmt: skip
        return self

    def _options(self) -> dict[str, str]:
        return given_options(self) | {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}

    def _schema(self) -> StructType:
        from pyspark.sql.types import StringType, StructField, StructType

        given = cast("StructType", StructType.fromDDL(self.schema_))
        return StructType([*given.fields, StructField(_CORRUPT, StringType())])


class JsonMessageRead(DateTimes, LenientDateTimes, _WithSchema):
    """Columns from a JSON object, by name.

    - A field that `schema` does not name is dropped unseen; one that the object lacks is NULL.
    - A value of another type makes the record bad, and so does text that is no JSON object or not UTF-8.
    - What follows the object in the same record is not looked at.
    """

    type: Literal["json"] = "json"
    framed: bool = Field(
        False, description="Each record begins with a 0 and a 4-byte schema id, as serializers of a registry write it."
    )

    example: ClassVar[str] = "{type: json, schema: 'id BIGINT, at TIMESTAMP'}"

    def decoding(self, data: Column, subject: RegistrySubject) -> Decoding:
        from pyspark.sql.functions import from_json, is_valid_utf8, lit, when

        schema = self._schema()
        body = when(magic_byte(data) == lit(b"\0"), body_of(data)) if self.framed else data
        text = body.cast("string")

        def reason(parsed: Column) -> Column:
            why = _json_reason(text, parsed, schema)
            return when(*not_framed(data)).otherwise(why) if self.framed else why

        return Decoding(
            # Spark compiles no part of what `from_json` is given, so whether it is UTF-8 is asked outside of it.
            when(is_valid_utf8(text), from_json(text, schema, self._options())),
            lambda parsed: _columns(parsed, schema),
            lambda parsed: parsed.isNotNull() & parsed[_CORRUPT].isNull(),
            reason,
        )


class CsvMessageRead(DateTimes, LenientDateTimes, _WithSchema):
    """Columns from one line of separated values, by position.

    - A line with fewer or more values than columns is bad, and so is a value of another type.
    """

    type: Literal["csv"] = "csv"
    sep: str | None = spark_option(None, "What stands between two values. Spark's default: `,`.", min_length=1)
    quote: str | None = spark_option(
        None, "Encloses values that hold a separator. Spark's default: `\"`.", max_length=1
    )
    escape: str | None = spark_option(
        None, "Stands before a quote inside a quoted value. Spark's default: `\\`.", max_length=1
    )
    null_value: str | None = spark_option(None, "The text that stands for NULL. Spark's default: the empty string.")
    ignore_leading_white_space: bool | None = spark_option(None, "Cuts blanks before a value. Spark's default: false.")
    ignore_trailing_white_space: bool | None = spark_option(None, "Cuts blanks after a value. Spark's default: false.")

    example: ClassVar[str] = "{type: csv, schema: 'id BIGINT, name STRING', sep: ';'}"

    def decoding(self, data: Column, subject: RegistrySubject) -> Decoding:
        from pyspark.sql.functions import from_csv, is_valid_utf8, length, lit, when

        schema, options = self._schema(), self._options()
        text = data.cast("string")
        as_text = ", ".join(f"{quoted(name)} STRING" for name in schema.names)
        return Decoding(
            from_csv(when(is_valid_utf8(text) & (length(data) > lit(0)), text), schema.toDDL(), options),
            lambda parsed: _columns(parsed, schema),
            lambda parsed: parsed.isNotNull() & parsed[_CORRUPT].isNull(),
            lambda parsed: _csv_reason(text, parsed, schema, from_csv(text, as_text, options)),
        )


class TextMessageRead(Part):
    """One column `value STRING`. Bytes that are not UTF-8 make the record bad."""

    type: Literal["text"] = "text"

    example: ClassVar[str] = "{type: text}"

    def decoding(self, data: Column, subject: RegistrySubject) -> Decoding:
        from pyspark.sql.functions import is_valid_utf8, lit

        return Decoding(
            data.cast("string"),
            lambda parsed: [parsed.alias("value")],
            is_valid_utf8,
            lambda parsed: lit("not UTF-8"),
            is_cheap=True,
            is_record=False,
        )


class RawMessageRead(Part):
    """One column `value BINARY`: the bytes as they are."""

    type: Literal["raw"] = "raw"

    example: ClassVar[str] = "{type: raw}"

    def decoding(self, data: Column, subject: RegistrySubject) -> Decoding:
        from pyspark.sql.functions import lit

        return Decoding(
            data,
            lambda parsed: [parsed.alias("value")],
            lambda parsed: lit(True),
            lambda parsed: lit("cannot be decoded"),
            is_cheap=True,
            is_record=False,
        )


class JsonMessageWrite(DateTimes, WriteFormat):
    """A JSON object with a field for each column. Timestamps are written in UTC unless `time_zone` names another."""

    type: Literal["json"] = "json"
    ignore_null_fields: bool | None = spark_option(
        None, "Leaves out fields that are NULL, in place of writing `null`. Spark's default: true."
    )

    example: ClassVar[str] = "{type: json, ignore_null_fields: false}"

    def check(self, rows: DataFrame, columns: Sequence[str]) -> None:
        """Every column has a spelling in JSON."""

    def encoded(self, rows: DataFrame, columns: Sequence[str], subject: RegistrySubject) -> Column:
        return as_json(columns, given_options(self)).cast("binary")


class TextMessageWrite(Part):
    """The text of one column; of any type that has one."""

    type: Literal["text"] = "text"

    example: ClassVar[str] = "{type: text}"

    def check(self, rows: DataFrame, columns: Sequence[str]) -> None:
        _require_one(columns, self.type)

    def encoded(self, rows: DataFrame, columns: Sequence[str], subject: RegistrySubject) -> Column:
        from pyspark.sql.functions import col

        return col(quoted(columns[0])).cast("string").cast("binary")


class RawMessageWrite(Part):
    """The bytes of one column, BINARY or STRING, as they are."""

    type: Literal["raw"] = "raw"

    example: ClassVar[str] = "{type: raw}"

    def check(self, rows: DataFrame, columns: Sequence[str]) -> None:
        _require_one(columns, self.type)
        kind = dict(rows.dtypes)[columns[0]]
        if kind not in ("binary", "string"):
            raise Fault("KAFKA005", f"`{columns[0]}` is {kind.upper()}, and `raw` takes BINARY or STRING",
                        "cast it in the step, or use `format: text`", ("format",))  # fmt: skip

    def encoded(self, rows: DataFrame, columns: Sequence[str], subject: RegistrySubject) -> Column:
        from pyspark.sql.functions import col

        return col(quoted(columns[0])).cast("binary")


def as_json(columns: Sequence[str], options: dict[str, str] | None = None) -> Column:
    """The columns as one JSON object: the same text for the same values, whatever the session's time zone."""
    from pyspark.sql.functions import col, struct, to_json

    return to_json(struct(*(col(quoted(name)) for name in columns)), {"timeZone": "UTC"} | (options or {}))


def magic_byte(data: Column) -> Column:
    from pyspark.sql.functions import substring

    return substring(data, 1, 1)


def body_of(data: Column) -> Column:
    """What follows the magic byte and the schema id."""
    from pyspark.sql.functions import lit, substring

    return substring(data, lit(6), lit(2**31 - 1))


def not_framed(data: Column) -> tuple[Column, Column]:
    """When a message has no frame of a registry, and what to say then."""
    from pyspark.sql.functions import concat, conv, hex, length, lit, when  # noqa: A004 - Spark's name for it

    number = conv(hex(magic_byte(data)), 16, 10)
    short = concat(length(data).cast("string"), lit(" bytes, too few for a schema id"))
    wrong = concat(lit("wrong magic byte "), number, lit(", expected 0"))
    is_wrong = magic_byte(data) != lit(b"\0")
    return is_wrong | (length(data) < lit(5)), when(is_wrong & (length(data) > lit(0)), wrong).otherwise(short)


def _columns(parsed: Column, schema: StructType) -> list[Column]:
    return [parsed[name].alias(name) for name in schema.names if name != _CORRUPT]


def _json_reason(text: Column, parsed: Column, schema: StructType) -> Column:
    from pyspark.sql.functions import (
        array,
        coalesce,
        concat,
        from_json,
        is_valid_utf8,
        lit,
        transform,
        when,
    )

    def of_fields(fields: Column) -> Column:
        misfits = [
            _misfit(parsed, field.name, field.dataType.simpleString(), fields[field.name])
            for field in schema
            if field.name != _CORRUPT
        ]
        not_object = when(text.rlike(r'^\s*[\[0-9"-]'), lit("not a JSON object: ")).otherwise(lit("not JSON: "))
        refused = coalesce(json_limits.beyond_limits(text), concat(not_object, _shown(text)))
        no_fields = when(fields.isNull(), refused)
        return coalesce(no_fields, *misfits, lit("a value inside does not fit the schema"))

    # A lambda binds the fields, so that they are parsed once and not for each column.
    of_object = transform(array(from_json(text, "MAP<STRING, STRING>")), of_fields)[0]
    return (
        when(text.rlike(r"^\s*$"), lit("the value is empty"))
        .when(~is_valid_utf8(text), lit("not UTF-8"))
        .when(text.rlike(r"^\s*null\s*$"), lit("the value is JSON null"))
        .otherwise(of_object)
    )


def _csv_reason(text: Column, parsed: Column, schema: StructType, values: Column) -> Column:
    from pyspark.sql.functions import array, coalesce, concat, is_valid_utf8, length, lit, transform, when

    def of_values(values: Column) -> Column:
        names = [field for field in schema if field.name != _CORRUPT]
        misfits = [_misfit(parsed, field.name, field.dataType.simpleString(), values[field.name]) for field in names]
        return coalesce(*misfits, concat(lit(f"not {len(names)} values: "), _shown(text)))

    return (
        when(length(text) == lit(0), lit("the value is empty"))
        .when(~is_valid_utf8(text), lit("not UTF-8"))
        .otherwise(transform(array(values), of_values)[0])
    )


def _misfit(parsed: Column, name: str, kind: str, text: Column) -> Column:
    from pyspark.sql.functions import concat, lit, when

    said = concat(lit(f"`{name}` is not {_article(kind)} {kind.upper()}: "), _shown(text))
    return when(text.isNotNull() & parsed[name].isNull(), said)


def _article(kind: str) -> str:
    return "an" if kind[0] in "aeiou" else "a"


def _shown(text: Column) -> Column:
    from pyspark.sql.functions import substring

    return substring(text, 1, _SHOWN_CHARACTERS)


def _require_one(columns: Sequence[str], kind: str) -> None:
    if len(columns) != 1:
        named = ", ".join(columns) or "none"
        raise Fault("KAFKA005", f"`{kind}` takes one column, and there are {len(columns)}: {named}",
                    "name the one that is written: `value: [column]`", ("format",))  # fmt: skip
