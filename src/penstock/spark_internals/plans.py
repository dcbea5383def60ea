"""Spark's plans of some rows: as JSON or text, judged or optimised, without running them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.spark_internals.gateway import analysed, java_session, jvm_of
from penstock.spark_internals.spark_calls import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IDLE_RULE = re.compile(r"([\w.$]+) -> RuleSummary\(\d+, \d+, 0\)")
"""A rule that changed nothing, in the optimiser's own record of the rules that it applied."""


def analyzed_json(rows: DataFrame) -> str:
    """The analysed plan, as Spark writes it in JSON."""
    return str(analysed(rows).toJSON())


def explained(rows: DataFrame) -> str:
    """All plans of these rows as text. Of a stream, the last one is that of a running query."""
    execution = jvm_of(rows.sparkSession).org.apache.spark.sql.execution
    command = execution.command.ExplainCommand(analysed(rows), execution.ExplainMode.fromString("extended"))
    return str(command.run(java_session(rows.sparkSession)).apply(0).getString(0))


def check_for_streaming(rows: DataFrame, mode: str) -> None:
    """Raises what Spark would raise if these rows were streamed in an output mode: `append`, `update`, `complete`."""
    jvm = jvm_of(rows.sparkSession)
    output_mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
    with active(rows.sparkSession):
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        checker.checkForStreaming(analysed(rows), output_mode)


def plan_text(rows: DataFrame) -> str:
    """The analysed plan as text."""
    return str(analysed(rows).toString())


def leaves(rows: DataFrame) -> list[bool]:
    """One entry for each source in the analysed plan: is it a stream?"""
    found = analysed(rows).collectLeaves()
    return [bool(found.apply(number).isStreaming()) for number in range(found.size())]


def has_pattern(rows: DataFrame, *patterns: str) -> bool:
    """Does the analysed plan hold one of these, by their names in Spark's `TreePattern`?"""
    names = jvm_of(rows.sparkSession).org.apache.spark.sql.catalyst.trees.TreePattern
    plan = analysed(rows)
    return any(plan.containsPattern(getattr(names, pattern)()) for pattern in patterns)


def optimised(rows: DataFrame) -> DataFrame:
    """The same rows, with the optimised plan in place of the analysed one."""
    from pyspark.sql import DataFrame as Rows

    session = java_session(rows.sparkSession)
    plan = session.sessionState().optimizer().execute(analysed(rows).clone())
    return Rows(jvm_of(rows.sparkSession).org.apache.spark.sql.classic.Dataset.ofRows(session, plan), rows.sparkSession)


def column_ids(rows: DataFrame) -> list[int]:
    """Spark's ids of the columns."""
    given = analysed(rows).output()
    return [int(given.apply(number).exprId().id()) for number in range(given.size())]


def plan_texts(rows: DataFrame) -> tuple[str, str, str, list[tuple[int, str]]]:
    """The analysed and the optimised plan in JSON, the latter as text too, and of each column its id and its name."""
    plan_in = analysed(rows)
    plan = java_session(rows.sparkSession).sessionState().optimizer().execute(plan_in.clone())
    given = plan_in.output()
    columns = [given.apply(number) for number in range(given.size())]
    ids = [(int(one.exprId().id()), str(one.name())) for one in columns]
    return str(plan_in.toJSON()), str(plan.toJSON()), str(plan.toString()), ids


def idle_rules(rows: DataFrame) -> list[str]:
    """The optimiser's rules that change nothing in the plan of these rows, and that a session may switch off."""
    jvm = jvm_of(rows.sparkSession)
    optimiser = java_session(rows.sparkSession).sessionState().optimizer()
    applied = jvm.org.apache.spark.sql.catalyst.QueryPlanningTracker(jvm.scala.Option.empty())
    optimiser.executeAndTrack(analysed(rows).clone(), applied)
    needed = optimiser.nonExcludableRules().mkString(",").split(",")
    return [rule for rule in _IDLE_RULE.findall(applied.rules().toString()) if rule not in needed]
