"""The quick parser of SQL, which needs no JVM. It knows most of Spark's SQL; Spark's own parser judges later."""

from __future__ import annotations

import logging
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.notation.references import sketch

if TYPE_CHECKING:
    from sqlglot import exp

WINDOW = "_indow"
"""Stands for `window` in a parsed text."""
_SPAN = r"('[^']*'|\d+)\s+[a-z]+"
_WATERMARK = re.compile(
    rf"\bWATERMARK\s.+?\sDELAY\s+OF\s+INTERVAL\s+{_SPAN}(\s+{_SPAN})*(\s+TO\s+[a-z]+)?", re.IGNORECASE | re.DOTALL
)
"""`FROM orders WATERMARK at DELAY OF INTERVAL 10 MINUTES`, which only Spark's own parser knows."""


class SqlNotUnderstood(ValueError):
    """The parser that needs no JVM could not read the SQL; line from 1, column from 0."""

    def __init__(self, message: str, line: int, column: int) -> None:
        self.line, self.column = line, column
        super().__init__(message)


@cache
def stamp() -> int:
    """What a parser found is known for that parser: a newly installed one has files of another time."""
    parser = find_spec("sqlglot")
    return Path(parser.origin).stat().st_mtime_ns if parser and parser.origin else 0


def parsed(sql: str) -> exp.Query:
    """The tree of a SELECT. Raises SqlNotUnderstood."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it cannot read is told as a Problem, not in its log
    try:
        tree = sqlglot.parse_one(_readable(sketch(sql)), read="databricks")
    except SqlglotError as error:
        raise _not_understood(error) from None
    except RecursionError:
        raise SqlNotUnderstood("it is nested too deeply", 1, 0) from None
    except Exception:  # noqa: BLE001 - sqlglot stumbles over some broken SQL; Spark's parser judges later
        raise SqlNotUnderstood("it cannot be parsed", 1, 0) from None
    if not isinstance(tree, exp.Query):
        raise SqlNotUnderstood("it is not a SELECT", 1, 0)
    return tree


def sets_watermark(sql: str) -> bool:
    """Does a clause of it set a watermark?"""
    return _WATERMARK.search(sql) is not None


def _readable(sql: str) -> str:
    sql = _WATERMARK.sub(lambda clause: re.sub(r"\S", " ", clause[0]), sql)  # everything else stays where it is
    # sqlglot reads a bare `window(` after GROUP BY as the start of a WINDOW clause. Another function of the same length
    # leaves tables and columns where they are.
    return re.sub(r"(?<![`\w])window(?=\s*\()", WINDOW, sql, flags=re.IGNORECASE)


def _not_understood(error: Exception) -> SqlNotUnderstood:
    details = getattr(error, "errors", None)
    if not details:
        return SqlNotUnderstood(str(error).splitlines()[0], 1, 0)
    first = details[0]
    near = f" near `{first['highlight']}`" if first.get("highlight") else ""
    said = str(first.get("description") or "it cannot be parsed").rstrip(".")
    message = "something is missing" if "<class " in said else said  # a class of sqlglot means nothing to a user
    column = max(0, int(first.get("col") or 1) - len(first.get("highlight") or " "))
    return SqlNotUnderstood(f"{message}{near}", int(first.get("line") or 1), column)
