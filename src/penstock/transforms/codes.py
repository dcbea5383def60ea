"""What the codes of steps mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "DEDUPLICATE001",
        "A key of `deduplicate` is no column",
        "Duplicates are found by columns that the rows have.",
    ),
    Code(
        "PROCESS001",
        "A `process` step names no stateful processor",
        "After `with:` stands `module:Class`: a class in a module of the project, made from PySpark's"
        " `StatefulProcessor`, with its methods `init` and `handleInputRows`.",
    ),
    Code(
        "PROCESS002",
        "Options do not fit a processor",
        "`options` are the keyword arguments of the processor's constructor: those that it takes, and all that it"
        " needs.",
    ),
    Code(
        "PROCESS003",
        "Rows have no such column to be grouped by",
        "The columns of `key` must be in the rows that the step gets, and in those of its initial state.",
    ),
)
