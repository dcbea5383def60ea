"""Steps that are easier to say in Python than in SQL."""

from pyspark.sql import DataFrame


def unique_orders(valid: DataFrame) -> DataFrame:
    """An order that is sent twice counts once, as long as its copies come within the watermark's delay."""
    return valid.dropDuplicatesWithinWatermark(["order_id"])
