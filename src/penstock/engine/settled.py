"""Plans that Spark has optimised once, before the first batch.

Spark plans every batch anew, three times over: once to run it and twice to describe it. Half of a small batch is that.
In an optimised plan the rules find nothing left to do, and those that find nothing need not look.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from penstock.engine.session import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPARED = "spark.sql.optimizer.excludedRules"
_IDLE_RULE = re.compile(r"([\w.$]+) -> RuleSummary\(\d+, \d+, 0\)")
"""A rule that changed nothing, in what Spark tells about the rules that it asked."""
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


def spare_rules(rows: DataFrame) -> None:
    """Lets the session of a query pass by the rules that find nothing to do in its plan. A user's own list wins.

    Spark would ask them all, three times for each batch. Rules that it cannot do without are never spared, and a query
    that reads a table beside its streams is left alone: that table may change, and its plan with it.
    """
    inside: Any = rows
    session, jvm = inside.sparkSession, inside.sparkSession._jvm
    with active(session):
        plan = inside._jdf.queryExecution().analyzed()
        leaves = plan.collectLeaves()
        if session.conf.get(_SPARED, None) is not None or not all(
            leaves.apply(number).isStreaming() for number in range(leaves.size())
        ):
            return
        optimiser = session._jsparkSession.sessionState().optimizer()
        asked = jvm.org.apache.spark.sql.catalyst.QueryPlanningTracker(jvm.scala.Option.empty())
        optimiser.executeAndTrack(plan.clone(), asked)
        needed = optimiser.nonExcludableRules().mkString(",").split(",")
        idle = [rule for rule in _IDLE_RULE.findall(asked.rules().toString()) if rule not in needed]
        session.conf.set(_SPARED, ",".join(idle))
