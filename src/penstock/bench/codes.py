"""What the codes of benchmarks mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "BENCH004",
        "A contender cannot be had",
        "Flink is installed on demand, in a virtual environment of its own in the user's cache. Without it the others"
        " are measured all the same.",
    ),
)
