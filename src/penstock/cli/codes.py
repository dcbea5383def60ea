"""What the codes of the terminal mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code("CHECK001", "A report cannot be written", "The folder of the file is not there, or may not be written to."),
    Code(
        "PROJECT009",
        "A file cannot be read or written",
        "The disk is full, the file is not there, or this user may not use it.",
    ),
)
