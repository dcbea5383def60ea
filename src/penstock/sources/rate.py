"""Rows at a steady pace."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.notation.durations import Duration, to_milliseconds
from penstock.sources.source import SourceSpec
from penstock.spec import given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Rate(SourceSpec):
    """Rows `timestamp, value` at a steady pace, for demos and load tests. Replayable: yes."""

    type: Literal["rate"] = "rate"
    rows_per_second: int = spark_option(1, "Rows emitted each second.", gt=0)
    ramp_up_time: Duration | None = spark_option(None, "How long the pace takes to reach `rows_per_second`.")
    num_partitions: int | None = spark_option(None, "Partitions of the rows; the default is Spark's parallelism.", gt=0)

    example: ClassVar[str] = "{type: rate, rows_per_second: 100, ramp_up_time: 5 seconds}"

    def load(self, spark: SparkSession) -> DataFrame:
        options = given_options(self)
        if self.ramp_up_time is not None:
            options["rampUpTime"] = (
                f"{math.ceil(to_milliseconds(self.ramp_up_time) / 1_000)}s"  # Spark counts whole seconds
            )
        return spark.readStream.format("rate").options(**options).load()
