"""How late records come in Real-Time Mode, by the time that each of them has: Spark's own progress does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark_internals import clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIMES = "penstock-times."
"""Starts the name of the observation of a source's records; the source's name follows."""
_NOW = "_penstock_now"
_BINS = 200
"""So many different times of a batch are counted exactly; of more, the nearest go together."""


def observed(records: DataFrame, source: str) -> DataFrame:
    """The same records. Each batch tells how late they came: from a record's `timestamp` until Spark had it in hand.

    Every record is looked at, for a third of a microsecond. With a sample, the pause between two batches would seem
    longer than it is by the time between two records of the sample.
    """
    from pyspark.sql.functions import col, count, histogram_numeric, lit, max, min, unix_millis, when  # noqa: A004

    now, time = col(_NOW), unix_millis("timestamp")
    # A producer may leave the time out, which Kafka then has as -1.
    late = when(time > lit(0), now - time)
    told = [
        # Counts as it goes. `percentile_approx` collects 50,000 times and then stops the stream to sort them.
        histogram_numeric(late, lit(_BINS)).alias("bins"),
        max(late).alias("max"),
        count(late).alias("records"),
        min(now).alias("first"),
        max(now).alias("last"),
    ]
    clocked = records.withColumn(_NOW, clock(records.sparkSession))
    return clocked.observe(f"{TIMES}{source}", *told).drop(_NOW)
