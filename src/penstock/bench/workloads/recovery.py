"""The keyed count with very many keys, killed in the middle and started again: how long until it goes on."""

from __future__ import annotations

from dataclasses import replace

from penstock.bench.workloads import keyed_count
from penstock.bench.workloads.workload import InputRecord, text_of

KEYS = 1_000_000


def payment(number: int, sent: int) -> InputRecord:
    """A payment with one of very many cards; the first ones are with each card once."""
    card = number * 7_919 % KEYS
    return InputRecord(str(card), text_of({"card": card, "cents": number % 997, "sent": sent}))


WORKLOAD = replace(
    keyed_count.WORKLOAD,
    name="recovery",
    title=f"the keyed count with {KEYS:,} keys, killed in the middle and started again",
    record=payment,
    backlog=KEYS,
    crashes=True,
    flink=None,
)
