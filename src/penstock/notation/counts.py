"""Numbers with their nouns."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`, `2 batches`, `2 queries`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{count:,} {noun.removesuffix('y')}ies"
    return f"{count:,} {noun}es" if noun.endswith("ch") else f"{count:,} {noun}s"
