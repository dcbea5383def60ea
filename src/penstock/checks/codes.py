"""What the codes of the checker itself mean."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHECK002",
        "A rule could not judge a pipeline",
        "The rule itself has a bug. The other rules were applied, and Spark judges the pipeline as always.",
    ),
)
