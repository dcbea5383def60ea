"""Comma-separated values."""

from __future__ import annotations

from typing import ClassVar, Literal

from penstock.formats.format import ReadFormat, WriteFormat
from penstock.formats.textual import Characters, Compressed, DateInference, DateTimes, LenientDateTimes, Parsing
from penstock.spec import Spec, spark_option


class CsvDialect(Spec):
    """The characters that a CSV file is made of."""

    sep: str | None = spark_option(
        None, "What stands between two values, one or more characters. Spark's default: `,`.", min_length=1
    )
    line_sep: str | None = spark_option(
        None,
        r"What ends a line, at most two characters. Spark's default: `\n`; reading takes `\r\n` and `\r` too.",
        min_length=1,
        max_length=2,
    )
    header: bool | None = spark_option(
        None, "The first line of each file holds the column names. Spark's default: false."
    )
    escape: str | None = spark_option(
        None,
        "Stands before a quote inside a quoted value; many tools double the quote. Spark's default: `\\`.",
        max_length=1,
    )
    char_to_escape_quote_escaping: str | None = spark_option(
        None,
        "Stands before an `escape` that is meant literally. Spark's default: `escape`, unless that equals `quote`.",
        max_length=1,
    )
    comment: str | None = spark_option(
        None,
        "Lines that start with it are skipped; in writing, such values are quoted. Spark's default: off.",
        max_length=1,
    )
    null_value: str | None = spark_option(None, "The text that stands for NULL. Spark's default: the empty string.")
    empty_value: str | None = spark_option(
        None, 'The text of an empty string. Spark\'s default: the empty string in reading, `""` in writing.'
    )
    ignore_leading_white_space: bool | None = spark_option(
        None, "Cuts blanks before a value. Spark's default: false in reading, true in writing."
    )
    ignore_trailing_white_space: bool | None = spark_option(
        None, "Cuts blanks after a value. Spark's default: false in reading, true in writing."
    )


class CsvRead(CsvDialect, Characters, DateTimes, LenientDateTimes, DateInference, Parsing, ReadFormat):
    """Rows from lines of separated values, by position.

    - The names in a header are ignored when `schema` is given: swapped columns are read as if nothing had happened.
      `enforce_schema: false` makes the query fail instead.
    - `schema: infer` finds only names, every type is STRING, unless `infer_schema: true` asks for the types too.
    - A value that does not fit its type makes its line malformed, and so do too many or too few values: the source's
      `on_bad_record`, or `mode`, judges it.
    - An empty value is NULL; so is a quoted empty one, unless `null_value` is set to another text.
    - Values with line breaks inside quotes need `multi_line: true`, and such a file is read by one task.
    """

    type: Literal["csv"] = "csv"
    quote: str | None = spark_option(
        None, "Encloses values that hold a separator; empty turns quotes off. Spark's default: `\"`.", max_length=1
    )
    infer_schema: bool | None = spark_option(
        None, "With `schema: infer`, guesses types too, at the price of one more pass. Spark's default: false."
    )
    enforce_schema: bool | None = spark_option(
        None, "Takes columns by position; false compares the header with `schema` and fails. Spark's default: true."
    )
    multi_line: bool | None = spark_option(
        None, "Quoted values may run over several lines; files are then not split. Spark's default: false."
    )
    nan_value: str | None = spark_option(None, "The text of a not-a-number. Spark's default: `NaN`.")
    positive_inf: str | None = spark_option(None, "The text of positive infinity. Spark's default: `Inf`.")
    negative_inf: str | None = spark_option(None, "The text of negative infinity. Spark's default: `-Inf`.")
    max_columns: int | None = spark_option(
        None, "A record with more columns fails the query. Spark's default: 20480.", gt=0
    )
    max_chars_per_column: int | None = spark_option(
        None, "A longer value fails the query; -1 sets no limit. Spark's default: -1.", ge=-1
    )
    unescaped_quote_handling: (
        Literal["stop_at_closing_quote", "back_to_delimiter", "stop_at_delimiter", "skip_value", "raise_error"] | None
    ) = spark_option(
        None,
        "Where a value with a quote that was not escaped ends, if it is kept. Spark's default: `stop_at_delimiter`.",
    )
    column_pruning: bool | None = spark_option(
        None, "Parses only the columns in use, so errors in the others go unseen. Spark's default: true."
    )
    input_buffer_size: int | None = spark_option(
        None, "Characters that the parser buffers. Spark's default: the parser's own, about a million.", gt=0
    )

    example: ClassVar[str] = "{type: csv, header: true, schema: 'id BIGINT, name STRING', mode: failfast}"


class CsvWrite(CsvDialect, Characters, DateTimes, Compressed, WriteFormat):
    """Rows as lines of separated values. Arrays, maps and structs have no spelling in CSV and are refused by Spark.

    - There is no header unless `header: true`; then every file has one.
    - Blanks around values are cut unless both `ignore_…_white_space` keys are false.
    - NULL is written as nothing and an empty string as `""`; Spark itself reads both back as NULL.
    """

    type: Literal["csv"] = "csv"
    # Empty is refused here, though Spark takes it: it would put NUL characters around values.
    quote: str | None = spark_option(
        None, "Encloses values that hold a separator. Spark's default: `\"`.", min_length=1, max_length=1
    )
    quote_all: bool | None = spark_option(
        None, "Quotes every value, not only those that need it. Spark's default: false."
    )
    escape_quotes: bool | None = spark_option(
        None, "Quotes a value that holds a quote character. Spark's default: true."
    )
    extension: str | None = spark_option(
        None, "Ending of the file names, letters only. Spark's default: `csv`.", pattern=r"^[A-Za-z]+$"
    )

    example: ClassVar[str] = "{type: csv, header: true, sep: ';', compression: gzip}"
