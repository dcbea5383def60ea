"""Rows of what a sink of the project will make: none yet, with the columns that they will have."""

from __future__ import annotations

import shutil
import tempfile
from atexit import register
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.notation.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@cache
def empty_folder() -> str:
    """One folder for the whole process that stays empty, as a URL: Spark's own file system may be another one."""
    folder = tempfile.mkdtemp(prefix="penstock-empty-")
    register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder).as_uri()


def no_rows(spark: SparkSession, columns: StructType, *, static: bool) -> DataFrame:
    """A table, or a stream, without rows."""
    if static:
        return spark.createDataFrame([], columns)
    return spark.readStream.schema(columns).parquet(empty_folder())


def to_ddl(columns: StructType) -> str:
    return ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in columns.fields)
