"""JSON, one document a line."""

from __future__ import annotations

from typing import ClassVar, Literal

from penstock.formats.format import ReadFormat, WriteFormat
from penstock.formats.textual import (
    Characters,
    Compressed,
    DateTimes,
    DecimalInference,
    LenientDateTimes,
    Lines,
    Parsing,
)
from penstock.spec import spark_option


class JsonRead(Characters, Lines, DateTimes, LenientDateTimes, DecimalInference, Parsing, ReadFormat):
    """Rows from JSON documents, by name: one a line, or one (or an array of them) a file with `multi_line: true`.

    - A field that `schema` does not name is dropped unseen; one that a document lacks is NULL.
    - A value of another type makes its record malformed, for the source's `on_bad_record`, or `mode`, to judge.
    - Upper and lower case matter in names: `Id` is not `id`.
    - An encoding other than UTF-8 needs `line_sep` or `multi_line: true`; UTF-16 and UTF-32 must say their byte order.
    """

    type: Literal["json"] = "json"
    multi_line: bool | None = spark_option(
        None, "A file is one document, or an array of them, and is read by one task. Spark's default: false."
    )
    primitives_as_string: bool | None = spark_option(
        None, "Inferring, takes every simple value for STRING. Spark's default: false."
    )
    drop_field_if_all_null: bool | None = spark_option(
        None, "Inferring, leaves out columns that are always NULL or an empty array. Spark's default: false."
    )
    infer_timestamp: bool | None = spark_option(
        None, "Inferring, takes strings that fit `timestamp_format` for TIMESTAMP. Spark's default: false."
    )
    allow_comments: bool | None = spark_option(
        None, "Passes over comments in the style of Java and C++. Spark's default: false."
    )
    allow_unquoted_field_names: bool | None = spark_option(
        None, "Takes field names without quotes. Spark's default: false."
    )
    allow_single_quotes: bool | None = spark_option(
        None, "Takes single quotes as well as double ones. Spark's default: true."
    )
    allow_numeric_leading_zeros: bool | None = spark_option(
        None, "Takes numbers such as `007`. Spark's default: false."
    )
    allow_non_numeric_numbers: bool | None = spark_option(
        None, "Takes `NaN`, `Infinity` and their like for numbers. Spark's default: true."
    )
    allow_backslash_escaping_any_character: bool | None = spark_option(
        None, "Takes a backslash before characters that need none. Spark's default: false."
    )
    allow_unquoted_control_chars: bool | None = spark_option(
        None, "Takes tabs and other control characters inside strings as they are. Spark's default: false."
    )
    use_unsafe_row: bool | None = spark_option(
        None, "Holds structs in Spark's binary row layout while parsing. Spark's default: false."
    )

    example: ClassVar[str] = "{type: json, schema: 'id BIGINT, at TIMESTAMP, _corrupt_record STRING', mode: permissive}"


class JsonWrite(Characters, Lines, DateTimes, Compressed, WriteFormat):
    """Rows as JSON documents, one a line.

    - A NULL is left out of its document, so a row of NULLs is `{}`; `ignore_null_fields: false` writes `null`.
    - With `pretty: true` a document takes several lines, and Spark can no longer read the file line by line.
    """

    type: Literal["json"] = "json"
    ignore_null_fields: bool | None = spark_option(
        None, "Leaves out fields that are NULL, in place of writing `null`. Spark's default: true."
    )
    pretty: bool | None = spark_option(None, "Indents documents, over several lines each. Spark's default: false.")
    write_non_ascii_character_as_code_point: bool | None = spark_option(
        None, r"Writes characters beyond ASCII as `\uXXXX`. Spark's default: false."
    )

    example: ClassVar[str] = "{type: json, ignore_null_fields: false, compression: gzip}"
