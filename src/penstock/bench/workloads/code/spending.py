"""Spending by card, as a processor of PySpark's own."""

# ruff: noqa: N802, N803 - Spark gives the methods their names

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor


class Spending(StatefulProcessor):
    """Counts and sums the payments of each card, and tells both whenever they change."""

    def init(self, handle: Any) -> None:
        self.total = handle.getValueState("total", "payments LONG, cents LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        payments, cents = self.total.get() or (0, 0)
        sent = 0
        for row in rows:
            payments, cents, sent = payments + 1, cents + row.cents, max(sent, row.sent)
        self.total.update((payments, cents))
        yield Row(card=key[0], payments=payments, cents=cents, sent=sent)
