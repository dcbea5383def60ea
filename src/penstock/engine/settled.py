"""Plans that Spark has optimised once, before the first batch.

Spark plans every batch anew, three times over: once to run it and twice to describe it. Half of a small batch is that.
What an optimised plan starts from, its rules have nothing left to do with.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from penstock.engine.session import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNSETTLED = ("CURRENT_LIKE", "PLAN_EXPRESSION", "PYTHON_UDF", "SCALA_UDF")
"""What means something else in each batch, or is not Spark's own."""
_TIME_WORDS = re.compile(r"cast\((now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""Texts that become the time of the batch when they are cast."""


def settled(rows: DataFrame) -> DataFrame:
    """The same rows with an optimised plan, where each batch would get the same one; else as they are.

    That is so for rows of one stream alone: a table that is read beside it may have changed. Operators that keep state
    are left as Spark finds them, for a checkpoint remembers what they looked like.
    """
    from pyspark.sql import DataFrame as Rows

    inside: Any = rows
    jvm: Any = rows.sparkSession._jvm
    with active(rows.sparkSession):
        plan = inside._jdf.queryExecution().analyzed()
        patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        if plan.collectLeaves().size() != 1 or _TIME_WORDS.search(plan.toString()):
            return rows
        if any(plan.containsPattern(getattr(patterns, name)()) for name in _UNSETTLED):
            return rows
        session: Any = rows.sparkSession._jsparkSession
        optimised = session.sessionState().optimizer().execute(plan.clone())
        made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, optimised)
    return Rows(made, rows.sparkSession)
