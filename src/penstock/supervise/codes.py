"""What the codes of running queries mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHECKPOINT007",
        "A checkpoint can only be gone on with by asynchronous progress",
        "With `async_progress` not every batch is written down. Going on without it, Spark asks for the batch before"
        " the newest; Penstock closes such a gap by itself with the newest one before it. Where that one was deleted,"
        " only asynchronous progress can go on: with `0 seconds` it writes down every batch, and after two of them the"
        " checkpoint is whole.",
    ),
    Code(
        "RECORD002",
        "Too many records are bad",
        "A few bad records are put aside; very many mean that something else is wrong. The batch is committed, and the"
        " query is stopped after it.",
    ),
    Code(
        "RECORD005",
        "Dead letters and the data path disagree",
        "The data path filters, and a query of its own writes the dead letters. Both have read the same rows, and yet"
        " they count different ones: a record may be missing, or stand twice.",
    ),
)
