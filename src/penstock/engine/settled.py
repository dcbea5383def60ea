"""Plans that Spark has optimised once, before the first batch.

Spark plans every batch anew, three times over: once to run it and twice to describe it. Half of a small batch is that.
In an optimised plan the rules find nothing left to do, and those that find nothing need not look.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock import spark_internals
from penstock.spark_internals import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPARED = "spark.sql.optimizer.excludedRules"
_UNSETTLED = ("CURRENT_LIKE", "PLAN_EXPRESSION", "PYTHON_UDF", "SCALA_UDF")
"""What means something else in each batch, or is not Spark's own."""
_TIME_WORDS = re.compile(r"cast\((now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""Texts that become the time of the batch when they are cast."""


def settled(rows: DataFrame) -> DataFrame:
    """The same rows with an optimised plan, where each batch would get the same one; else as they are.

    That is so for rows of one stream alone: a table that is read beside it may have changed. Operators that keep state
    are left as Spark finds them, for a checkpoint remembers what they looked like.
    """
    with active(rows.sparkSession):
        if len(spark_internals.leaves(rows)) != 1 or _TIME_WORDS.search(spark_internals.plan_text(rows)):
            return rows
        return rows if spark_internals.has_pattern(rows, *_UNSETTLED) else spark_internals.optimised(rows)


def spare_rules(rows: DataFrame) -> None:
    """Lets the session of a query pass by the rules that find nothing to do in its plan. A user's own list wins.

    Spark would ask them all, three times for each batch. Rules that it cannot do without are never spared, and a query
    that reads a table beside its streams is left alone: that table may change, and its plan with it.
    """
    session = rows.sparkSession
    with active(session):
        if session.conf.get(_SPARED, None) is None and all(spark_internals.leaves(rows)):
            session.conf.set(_SPARED, ",".join(spark_internals.idle_rules(rows)))
