"""A sink for tests: it keeps the rows of each batch in this process, by the sink's name."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tests.models.outcome import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.sinks.batch import Batch

held: defaultdict[str, dict[int, Counter[Row]]] = defaultdict(dict)


def keep(rows: DataFrame, batch: Batch) -> None:
    if found := Counter(tuple(row) for row in rows.collect()):
        held[batch.sink][batch.number] = found
