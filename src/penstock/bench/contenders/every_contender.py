"""The one list of contenders."""

from __future__ import annotations

from penstock.bench.contenders import flink, floor, penstock, plain_spark
from penstock.bench.contenders.contender import Contender

FLOOR = floor.CONTENDER
OURS = (penstock.LOW, penstock.REAL_TIME)
CONTENDERS: tuple[Contender, ...] = (
    FLOOR,
    plain_spark.DEFAULTS,
    plain_spark.NAIVE,
    plain_spark.TUNED,
    *OURS,
    flink.SQL,
    flink.TUNED,
)
"""In the order in which they are listed, and run in the first round."""
