"""What every format has: a schema when it is read, options when it is read or written."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from penstock.spec import Part, WithSparkOptions

INFER = "infer"


class ReadFormat(Part, WithSparkOptions):
    """A format that rows are read from."""

    type: str
    schema_: str | None = Field(
        None,
        alias="schema",
        description="Columns and types as DDL, such as `id BIGINT, at TIMESTAMP`, or `infer` to look at the files.",
    )


class WriteFormat(Part, WithSparkOptions):
    """A format that rows are written in."""

    type: str


def from_word(value: Any) -> Any:
    """`format: parquet` is short for `format: {type: parquet}`."""
    return {"type": value} if isinstance(value, str) else value
