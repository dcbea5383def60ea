"""ORC."""

from __future__ import annotations

from typing import ClassVar, Literal

from penstock.formats.columnar import MergedSchema
from penstock.formats.format import ReadFormat, WriteFormat
from penstock.spec import spark_option


class OrcRead(MergedSchema, ReadFormat):
    """Rows from ORC files, by name. Compression is known from the files.

    - A column that a file lacks is NULL; one that `schema` does not name is not read.
    - Files of an old Hive, whose columns are called `_col0`, `_col1` …, are read by position.
    """

    type: Literal["orc"] = "orc"

    example: ClassVar[str] = "{type: orc, schema: 'id BIGINT, name STRING', merge_schema: false}"


class OrcWrite(WriteFormat):
    """Rows as ORC files, with their schema: NULLs, nested values and types come back as they were."""

    type: Literal["orc"] = "orc"
    compression: Literal["none", "uncompressed", "zlib", "snappy", "lzo", "lz4", "zstd", "brotli"] | None = (
        spark_option(None, "Codec of the stripes; Spark ships none for `brotli`. Spark's default: `zstd`.")
    )

    example: ClassVar[str] = "{type: orc, compression: zlib}"
