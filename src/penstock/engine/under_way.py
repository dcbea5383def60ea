"""The batch that a real-time query has under way.

Spark reports on a batch at its end, minutes later; the metrics of its tasks come with every heartbeat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.spark_internals import SPARK_IS_GONE, sql_executions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SCAN = "RealTimeStreamScan"
_ROWS = "number of output rows"
_BATCH = re.compile(r"batch = (\d+)")
_LOOKED_AT = 100
"""At most so many of the newest executions of the process are looked through for that of a batch."""


@dataclass(frozen=True)
class UnderWay:
    """The rows that a batch has read so far."""

    batch: int
    rows: int


class BatchMetrics:
    """Follows the batches of one run of a query, by what Spark keeps for its own page on SQL."""

    def __init__(self, streaming: StreamingQuery, spark: SparkSession) -> None:
        self._store = sql_executions(spark)
        self._run = f"runId = {streaming.runId}"
        self._seen = -1
        self._execution = -1
        self._batch = -1
        self._metrics: tuple[int, ...] = ()

    def look(self) -> UnderWay | None:
        """The batch under way; None between two, before its first heartbeat, and where Spark is gone."""
        try:
            # A batch has two executions, one inside of the other, and the newer has the metrics.
            rows = self._rows() if self._is_running() else None
            if rows is None and self._find():
                rows = self._rows()
        except SPARK_IS_GONE:
            return None
        return None if rows is None else UnderWay(self._batch, rows)

    def _is_running(self) -> bool:
        found = self._store.execution(self._execution)
        return bool(found.isDefined() and found.get().completionTime().isEmpty())

    def _find(self) -> bool:
        """Looks for the execution of the newest batch among those that began since the last look."""
        first = max(0, int(self._store.executionsCount()) - _LOOKED_AT)
        newest = self._store.executionsList(first, _LOOKED_AT)
        seen = self._seen
        for number in range(newest.size() - 1, -1, -1):
            one = newest.apply(number)
            execution = int(one.executionId())
            if execution <= seen:
                break
            self._seen = max(self._seen, execution)
            batch = _BATCH.search(one.description())
            if batch and self._run in one.description() and one.completionTime().isEmpty():
                self._execution, self._batch = execution, int(batch.group(1))
                self._metrics = tuple(_row_counts(self._store.planGraph(execution)))
                return True
        return False

    def _rows(self) -> int | None:
        values = self._store.executionMetrics(self._execution)
        told = [value for value in map(values.get, self._metrics) if value.isDefined()]
        return sum(_number(value.get()) for value in told) if told else None


def _row_counts(graph: Any) -> list[int]:
    """The metrics of a plan that count the rows of its sources."""
    nodes = graph.allNodes()
    scans = [nodes.apply(number) for number in range(nodes.size())]
    return [
        int(metric.accumulatorId())
        for metrics in (scan.metrics() for scan in scans if scan.name().startswith(_SCAN))
        for metric in (metrics.apply(number) for number in range(metrics.size()))
        if metric.name() == _ROWS
    ]


def _number(text: str) -> int:
    """As the page shows it: `1,234`."""
    return int(re.sub(r"\D", "", text.partition("\n")[0]) or 0)
