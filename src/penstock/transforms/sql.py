"""A step in SQL."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from penstock.cache import Memory
from penstock.references import sketch
from penstock.transforms.step import Code, OutputMode, StepSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SqlNotUnderstood(ValueError):
    """The parser that needs no JVM could not read the SQL; line from 1, column from 0."""

    def __init__(self, message: str, line: int, column: int) -> None:
        self.line, self.column = line, column
        super().__init__(message)


class Sql(StepSpec):
    """One SELECT over the sources and steps that it names. Spark's SQL in full; `window(…)` groups by event time."""

    key: ClassVar[str] = "sql"
    sql: str = Field(description="A SELECT; sources and steps are its tables.", min_length=1)

    example: ClassVar[str] = "{sql: 'SELECT city, count(*) AS orders FROM orders GROUP BY city'}"

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        return spark.sql(self.sql)


@cache
def tables_in(sql: str) -> tuple[str, ...]:
    """The tables that a SELECT reads, in order, its own CTEs left out. Raises SqlNotUnderstood.

    Remembered between commands: the parser is the largest part of a fast check, and most texts stay as they are.
    """
    known = _memory().get(sql)
    if known is None:
        known = _parsed(sql)
        _memory().put(sql, known)
    return known


@cache
def _memory() -> Memory:
    # What a parser found is known for that parser: a newly installed one has files of another time.
    parser = find_spec("sqlglot")
    stamp = Path(parser.origin).stat().st_mtime_ns if parser and parser.origin else 0
    return Memory(f"sql-{stamp}")


def _parsed(sql: str) -> tuple[str, ...]:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it cannot read is told as a Problem, not in its log
    try:
        tree = sqlglot.parse_one(_readable(sketch(sql)), read="databricks")
        scopes = traverse_scope(tree) if isinstance(tree, exp.Query) else None
    except SqlglotError as error:
        raise _not_understood(error) from None
    except RecursionError:
        raise SqlNotUnderstood("it is nested too deeply", 1, 0) from None
    except Exception:  # noqa: BLE001 - sqlglot stumbles over some broken SQL; Spark's parser judges later
        raise SqlNotUnderstood("it cannot be parsed", 1, 0) from None
    if scopes is None:
        raise SqlNotUnderstood("it is not a SELECT", 1, 0)
    names: dict[str, None] = {}
    for scope in scopes:
        for source in scope.tables:
            if source.name and source.name not in scope.cte_sources:
                names[".".join(part.name for part in source.parts)] = None
    return tuple(names)


def _readable(sql: str) -> str:
    # sqlglot reads a bare `window(` after GROUP BY as the start of a WINDOW clause. Another function of the same length
    # leaves tables and columns where they are.
    return re.sub(r"(?<![`\w])window(?=\s*\()", "_indow", sql, flags=re.IGNORECASE)


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
