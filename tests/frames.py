"""Rows for a test, handed to Spark as Arrow: a list of tuples would go through Python workers, which start first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: str) -> DataFrame:
    """The same rows as `spark.createDataFrame(rows, schema)` gives."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    struct = StructType.fromDDL(schema)
    given = list(rows)
    columns = [[row[at] for row in given] for at in range(len(struct))]
    table = pyarrow.Table.from_arrays(
        [pyarrow.array(values, field.type) for values, field in zip(columns, to_arrow_schema(struct), strict=True)],
        schema=to_arrow_schema(struct),
    )
    return spark.createDataFrame(table, struct)
