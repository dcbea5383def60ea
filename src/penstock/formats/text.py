"""Plain text, one line a row."""

from __future__ import annotations

from typing import ClassVar, Literal

from penstock.formats.format import ReadFormat, WriteFormat
from penstock.formats.textual import Compressed, Lines
from penstock.spec import Spec, spark_option


class LineSeparatorEncoding(Spec):
    """Text whose lines end in bytes of another encoding. The lines themselves stay UTF-8."""

    encoding: str | None = spark_option(
        None, "Encoding of `line_sep` alone; the text is UTF-8 in any case. Spark's default: UTF-8.", min_length=1
    )


class TextRead(Lines, LineSeparatorEncoding, ReadFormat):
    """One row `value STRING` a line, or a file with `whole_text: true`.

    - `schema` can be left out; it could only give the one STRING column another name.
    - Bytes are taken for UTF-8, whatever `encoding` says.
    """

    type: Literal["text"] = "text"
    whole_text: bool | None = spark_option(
        None, "Makes one row of each file. Spark's default: false.", name="wholetext"
    )

    example: ClassVar[str] = "{type: text, whole_text: true}"


class TextWrite(Lines, LineSeparatorEncoding, Compressed, WriteFormat):
    """Each row as one line. The rows must have one STRING column, beside those of `partition_by`.

    - A NULL becomes an empty line, and a line break inside a value makes two lines of it.
    """

    type: Literal["text"] = "text"

    example: ClassVar[str] = "{type: text, compression: bzip2}"
