"""What formats that keep a schema in each file share."""

from __future__ import annotations

from penstock.spec import Spec, spark_option


class MergedSchema(Spec):
    """Files whose columns have grown over time."""

    merge_schema: bool | None = spark_option(
        None, "Inferring, unites the columns of all files instead of trusting one file. Spark's default: false."
    )
