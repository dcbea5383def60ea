"""How late records come in Real-Time Mode, by the time that each of them has: Spark's own progress does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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
    clocked = records.withColumn(_NOW, _clock(records.sparkSession))
    return clocked.observe(f"{TIMES}{source}", *told).drop(_NOW)


def _clock(spark: SparkSession) -> Column:
    """The time at which a row is computed, in milliseconds. Spark's own functions give that of the batch's begin."""
    from pyspark.sql.classic.column import Column

    jvm: Any = spark._jvm
    nothing = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.ArrayList()).toSeq()
    called = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        jvm.java.lang.Class.forName("java.lang.System"),
        jvm.org.apache.spark.sql.types.DataType.fromJson('"long"'),
        "currentTimeMillis",
        nothing,
        nothing,
        True,  # propagates NULL: it has no arguments
        False,  # returns no NULL
        False,  # is not deterministic, so it is asked once for each row, where it stands
        jvm.scala.Option.empty(),
    )
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(called))
