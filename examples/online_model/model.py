"""A model that learns row by row, kept in state for each key."""

from collections.abc import Iterator
from math import sqrt

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class OnlineModel(StatefulProcessor):
    """Mean and variance in which older readings weigh less and less.

    Each reading is first scored, then learned from. The score is its distance from the mean in standard deviations; it
    is NULL until the model has seen `warm_up` readings. What is far off is learned from as well: a level that has
    changed for good is the new normal after a while.
    """

    def __init__(self, weight: float, warm_up: int) -> None:
        self.weight, self.warm_up = weight, warm_up

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.model = handle.getValueState("model", "readings LONG, mean DOUBLE, variance DOUBLE")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        readings, mean, variance = self.model.get() if self.model.exists() else (0, 0.0, 0.0)
        for row in sorted(rows, key=lambda row: (row.at, row.celsius)):
            known = readings >= self.warm_up and variance > 0
            score = round((row.celsius - mean) / sqrt(variance), 2) if known else None
            expected = round(mean, 2) if readings else None
            yield Row(sensor=key[0], at=row.at, celsius=row.celsius, expected=expected, score=score)
            readings, mean, variance = learned(readings, mean, variance, row.celsius, self.weight)
        self.model.update((readings, mean, variance))


def learned(readings: int, mean: float, variance: float, value: float, weight: float) -> tuple[int, float, float]:
    if readings == 0:
        return 1, value, 0.0
    step = weight * (value - mean)
    return readings + 1, mean + step, (1 - weight) * (variance + step * (value - mean))
