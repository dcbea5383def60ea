"""Names and texts as Spark's SQL takes them, whatever characters they hold."""

from __future__ import annotations


def quoted(name: str) -> str:
    """An identifier in backquotes. Without them a dot would mean a field inside of a column."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def literal(text: str) -> str:
    """A string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
