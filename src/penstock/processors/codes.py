"""What the codes of ready-made processors mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "READY001",
        "A ready-made processor names a column that is not there",
        "Its options name columns of the rows that it gets. Spark knows them once it has read the source's schema.",
    ),
    Code(
        "READY002",
        "A ready-made processor cannot use a column of this type",
        "Times are TIMESTAMPs, sums need numbers, and what is ranked or kept needs a type that Spark can sort or keep"
        " in state.",
    ),
    Code(
        "READY003",
        "A column would stand twice",
        "A ready-made processor adds columns to the rows. Names differ in more than their case.",
    ),
    Code(
        "READY006",
        "A processor's time column carries no watermark",
        "A processor that goes by event time closes sessions, leaves rankings and finds absences when the watermark has"
        " passed. The watermark must be on the very column that its option `time` names.",
    ),
)
