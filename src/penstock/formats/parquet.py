"""Parquet."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from penstock.formats.columnar import MergedSchema
from penstock.formats.format import ReadFormat, WriteFormat
from penstock.spec import spark_option


class RebaseMode(StrEnum):
    """What becomes of dates that two calendars count differently: those before 15 October 1582."""

    CORRECTED = "corrected"
    EXCEPTION = "exception"
    LEGACY = "legacy"

    def __str__(self) -> str:
        # Unlike its other choices, Spark knows these in capitals only, and fails on the first file otherwise.
        return self.value.upper()


class ParquetRead(MergedSchema, ReadFormat):
    """Rows from Parquet files, by name. Compression is known from the files.

    - A column that a file lacks is NULL; one that `schema` does not name is not read.
    - A type that does not fit the file's fails the query.
    - The rebase modes matter only for files with dates before 1582 that Spark 2, Hive or Impala wrote.
    """

    type: Literal["parquet"] = "parquet"
    datetime_rebase_mode: RebaseMode | None = spark_option(
        None,
        "Old dates and timestamps: `corrected` as they are, `legacy` moved from the Julian calendar, `exception` "
        "refused if they are ambiguous. Spark's default: `corrected`.",
    )
    int96_rebase_mode: RebaseMode | None = spark_option(
        None, "The same for timestamps in the old INT96 type. Spark's default: `corrected`."
    )

    example: ClassVar[str] = "{type: parquet, schema: 'id BIGINT, name STRING', merge_schema: false}"


class ParquetWrite(WriteFormat):
    """Rows as Parquet files, with their schema: NULLs, nested values and types come back as they were."""

    type: Literal["parquet"] = "parquet"
    compression: Literal["none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd"] | None = (
        spark_option(None, "Codec of the pages; Spark ships none for `lzo` and `brotli`. Spark's default: `snappy`.")
    )

    example: ClassVar[str] = "{type: parquet, compression: zstd}"
