"""A step in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from penstock.cache import Remembered
from penstock.facts.operators import Operator
from penstock.transforms import sql_parser, sql_plan
from penstock.transforms.sql_parser import SqlNotUnderstood
from penstock.transforms.step import Code, OutputMode, StepSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Sql(StepSpec):
    """One SELECT over the sources and steps that it names. Spark's SQL in full; `window(…)` groups by event time."""

    key: ClassVar[str] = "sql"
    sql: str = Field(description="A SELECT; sources and steps are its tables.", min_length=1)

    example: ClassVar[str] = "{sql: 'SELECT city, count(*) AS orders FROM orders GROUP BY city'}"

    def plan(self, name: str, inputs: Mapping[str, Operator]) -> Operator | None:
        return sql_plan.plan_of_sql(self.sql, name, inputs)

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
        known = _tables_in(sql)
        _memory().put(sql, known)
    return tuple(known)


@cache
def _memory() -> Remembered:
    return Remembered(f"sql-{sql_parser.stamp()}")


def _tables_in(sql: str) -> list[str]:
    from sqlglot.optimizer.scope import traverse_scope

    tree = sql_parser.parsed(sql)
    try:
        scopes = traverse_scope(tree)
    except RecursionError:
        raise SqlNotUnderstood("it is nested too deeply", 1, 0) from None
    except Exception:  # noqa: BLE001 - sqlglot stumbles over some broken SQL; Spark's parser judges later
        raise SqlNotUnderstood("it cannot be parsed", 1, 0) from None
    names: dict[str, None] = {}
    for scope in scopes:
        for source in scope.tables:
            if source.name and source.name not in scope.cte_sources:
                names[".".join(part.name for part in source.parts)] = None
    return list(names)
