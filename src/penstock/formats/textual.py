"""What formats made of text share: characters, lines, dates, records that cannot be parsed, compression."""

from __future__ import annotations

from typing import Literal

from penstock.spec import Spec, spark_option


class Characters(Spec):
    """Text whose bytes can be in any encoding that Java knows."""

    encoding: str | None = spark_option(
        None, "Encoding of the bytes, such as `ISO-8859-1`. Spark's default: UTF-8.", min_length=1
    )


class Lines(Spec):
    """One record a line."""

    line_sep: str | None = spark_option(
        None, r"What ends a line. Spark's default: `\n`; reading takes `\r\n` and `\r` too.", min_length=1
    )


class DateTimes(Spec):
    """Dates and timestamps spelled out by patterns, the same ones for reading and writing."""

    date_format: str | None = spark_option(None, "Pattern of DATE values. Spark's default: `yyyy-MM-dd`.", min_length=1)
    timestamp_format: str | None = spark_option(
        None,
        "Pattern of TIMESTAMP values. Spark's default: `yyyy-MM-dd'T'HH:mm:ss[.SSS][XXXXX]`, read more leniently.",
        min_length=1,
    )
    timestamp_ntz_format: str | None = spark_option(
        None,
        "Pattern of TIMESTAMP_NTZ values, which have no zone. Spark's default: `yyyy-MM-dd'T'HH:mm:ss[.SSS]`.",
        name="timestampNTZFormat",
        min_length=1,
    )
    time_zone: str | None = spark_option(
        None, "Zone of timestamps that name none, such as `Europe/Oslo`. Spark's default: the session's.", min_length=1
    )
    locale: str | None = spark_option(
        None, "Language of month and day names in patterns, such as `de-AT`. Spark's default: `en-US`.", min_length=1
    )


class LenientDateTimes(Spec):
    """A second try at dates and timestamps that do not fit their pattern."""

    enable_date_time_parsing_fallback: bool | None = spark_option(
        None, "Tries Spark's own spellings where the pattern does not fit. Spark's default: only if no pattern is set."
    )


class DateInference(Spec):
    """Columns of dates told apart from columns of timestamps."""

    prefer_date: bool | None = spark_option(
        None, "Inferring, takes a column that holds only dates for DATE. Spark's default: true."
    )


class DecimalInference(Spec):
    """Numbers with a fraction kept exact."""

    prefers_decimal: bool | None = spark_option(
        None, "Inferring, takes fractions for DECIMAL, and for DOUBLE where they do not fit. Spark's default: false."
    )


class Parsing(Spec):
    """Records that may be malformed, and schemas that may have to be guessed."""

    mode: Literal["permissive", "dropmalformed", "failfast"] | None = spark_option(
        None,
        "A malformed record: `permissive` puts NULLs, `dropmalformed` loses it unseen, `failfast` stops the query. "
        "Spark's default: `permissive`.",
    )
    column_name_of_corrupt_record: str | None = spark_option(
        None,
        "The STRING column that takes the text of a malformed record, if `schema` has it. "
        "Spark's default: `_corrupt_record`.",
        min_length=1,
    )
    sampling_ratio: float | None = spark_option(
        None, "Share of the records that are looked at to infer a schema. Spark's default: 1.0.", gt=0, le=1
    )
    single_variant_column: str | None = spark_option(
        None, "Puts each whole record into one VARIANT column of this name. Spark's default: off.", min_length=1
    )


class Compressed(Spec):
    """Files squeezed by one of Hadoop's codecs. Readers know it by the file's extension and need no option."""

    compression: Literal["none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy"] | None = spark_option(
        None, "Codec of the files; only `bzip2` ones can be read in parallel pieces. Spark's default: none."
    )
