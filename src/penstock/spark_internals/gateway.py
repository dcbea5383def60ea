"""From PySpark's objects to those of the JVM behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def unwrapped(value: Any) -> Any:
    """The value, of a type that has private members."""
    return value


def jvm_of(spark: SparkSession) -> Any:
    return unwrapped(spark)._jvm


def java_session(spark: SparkSession) -> Any:
    return unwrapped(spark)._jsparkSession


def analysed(rows: DataFrame) -> Any:
    return unwrapped(rows)._jdf.queryExecution().analyzed()
