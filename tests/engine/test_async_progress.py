"""What Spark says where our rules refuse asynchronous progress. The options are set on its writer as Penstock does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.query.async_progress import CACHE, writer_options
from penstock.query.triggers import Trigger

DEFAULT = Trigger("default")


def five_rows(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


def refusal(rows: Any, format_: str, folder: Path, trigger: Trigger = DEFAULT) -> str:
    writer = rows.writeStream.options(checkpointLocation=str(folder / "checkpoint"), **writer_options("1 second"))
    writer = trigger.set_on(writer.outputMode("update" if format_ == "noop" else "append"))
    writer = writer.foreachBatch(lambda batch, number: None) if format_ == "batches" else writer.format(format_)
    try:
        streaming = writer.start(str(folder / "out")) if format_ == "parquet" else writer.start()
        try:
            streaming.awaitTermination(30)
        finally:
            streaming.stop()
    except Exception as error:  # noqa: BLE001 - PySpark gives each refusal a class of its own
        return str(error)
    return ""


@pytest.mark.spark
def test_spark_refuses_what_our_rules_refuse(spark: SparkSession, tmp_path: Path) -> None:
    rows = five_rows(spark)
    counts = rows.groupBy("value").count()
    assert "Stateful streaming queries does not support" in refusal(counts, "noop", tmp_path / "a")
    assert "does not support async progress" in refusal(rows, "parquet", tmp_path / "b")
    assert "does not support async progress" in refusal(rows, "batches", tmp_path / "c")
    assert "cannot be used with Once" in refusal(rows, "noop", tmp_path / "d", Trigger("once"))
    assert "cannot be used with AvailableNow" in refusal(rows, "noop", tmp_path / "e", Trigger("available_now"))
    without_cache = spark.newSession()
    without_cache.conf.set(CACHE, "false")
    assert "assertion failed" in refusal(five_rows(without_cache), "noop", tmp_path / "f")
