"""A sink for tests: it keeps the rows of each batch in this process, by the sink's name."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.sinks.batch import Batch

held: defaultdict[str, dict[int, list[dict[str, Any]]]] = defaultdict(dict)


def keep(rows: DataFrame, batch: Batch) -> None:
    held[batch.sink][batch.number] = [row.asDict(True) for row in rows.collect()]
