"""Why a record of Kafka cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

    from penstock.formats.messages import Decoding
    from penstock.sources.kafka import Kafka

PARSED = {"value": "_penstock_value", "key": "_penstock_key"}
"""The columns of what was parsed."""


def data_of(source: Kafka) -> Column:
    """The bytes that are decoded: none where they are too many."""
    from pyspark.sql.functions import col, length, lit, when

    value = col("value")
    return value if source.max_record_bytes is None else when(length(value) <= lit(source.max_record_bytes), value)


def reason_of(source: Kafka, decodings: dict[str, Decoding], in_words: bool) -> Column:
    """NULL for a good record."""
    from pyspark.sql.functions import coalesce, col, concat, length, lit, when

    data, value = data_of(source), decodings["value"]
    parsed = {name: col(PARSED[name]) for name in decodings}
    value_fits = value.fits(parsed["value"])
    good = data.isNotNull() & value_fits
    if source.keep_tombstones:
        good = col("value").isNull() | good
    why = when(col("value").isNull(), lit("the value is NULL"))
    if source.max_record_bytes is not None:
        size, limit = length("value"), lit(f" bytes, more than max_record_bytes: {source.max_record_bytes}")
        why = why.when(data.isNull(), concat(size.cast("string"), limit))
    if "key" in decodings:
        key = decodings["key"]
        good = good & (col("key").isNull() | key.fits(parsed["key"]))
        bad_key = concat(lit("the key: "), key.reason(parsed["key"]))
        why = why.when(value_fits | col("value").isNull(), bad_key)
        if source.keep_tombstones:
            why = when(col("value").isNull(), bad_key).otherwise(why)
    why = coalesce(why, value.reason(parsed["value"]), lit("cannot be decoded")) if in_words else lit("")
    return when(good, lit(None).cast("string")).otherwise(why)
