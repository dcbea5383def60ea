"""What the codes of preparing queries mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "SPARK007",
        "A listener cannot be added",
        "`listeners:` names classes of type StreamingQueryListener that take no arguments.",
    ),
)
