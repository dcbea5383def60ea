"""The hidden column that a decoded source gives beside the user's columns, and what becomes of records that are bad.

`_penstock` holds the record as it came, why it could not be decoded, and where it came from. The engine filters by it
and takes it away before a user's step can see it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.spec import Spec

HIDDEN = "_penstock"
ARRIVED = "_penstock_arrived"
"""When a record came, where its source can tell: there only if a row may not be too far ahead of that."""
ORIGIN_SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, file STRING"
)
"""Where a record came from: a place in a Kafka topic with what stood beside the value there, or a file."""
HIDDEN_SCHEMA = f"raw BINARY, reason STRING, origin STRUCT<{', '.join(ORIGIN_SCHEMA.split(', '))}>"
"""`reason` is NULL for a record that was decoded."""

DECODED = "decoded"
"""The name of the check that every decoded record must pass."""
FUTURE = "max_future"
"""The name of the check that a row is not too far ahead of its time."""

OnBadRecord = Literal["fail", "drop", "dead_letter"]
Otherwise = Literal["warn", "drop", "fail", "dead_letter"]


class Expectation(Spec):
    """A condition that rows should meet, and what becomes of those that do not."""

    that: str = Field(description="A SQL condition on one row. A row meets it if it is true: NULL does not.")
    otherwise: Otherwise = Field(
        "warn", description="`warn` counts the row, `drop` leaves it out, `fail` stops, `dead_letter` puts it aside."
    )
