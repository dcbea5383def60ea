"""Runs the rules. The list of their files is here, in the order in which Problems are best read."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from penstock.checks.rule import Kind, Rule, Subject
from penstock.checks.rules import (
    async_progress,
    bad_records,
    chains,
    checkpoints,
    clocks,
    clusters,
    continuous,
    event_time,
    files,
    graph,
    growth,
    joins,
    modes,
    operators,
    processors,
    queries,
    ready_made,
    real_time,
    safety,
    state_stores,
    triggers,
)
from penstock.problems import Problem, errors_in

_TOPICS: tuple[ModuleType, ...] = (
    graph,
    chains,
    modes,
    joins,
    operators,
    clocks,
    continuous,
    real_time,
    triggers,
    async_progress,
    event_time,
    growth,
    queries,
    safety,
    processors,
    ready_made,
    bad_records,
    state_stores,
    files,
    clusters,
    checkpoints,
)


def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of its file."""
    return tuple(value for topic in _TOPICS for value in vars(topic).values() if isinstance(value, Rule))


def judge(subject: Subject, *, spec: bool = True, disk: bool = False, spark: bool = False) -> tuple[Problem, ...]:
    """What is wrong with a pipeline. A broken graph is told alone: everything else would follow from it.

    With `spark` Spark will be asked later, so nothing is told that it can tell better: of SQL and of operators.
    """
    asked = {"spec": spec, "disk": disk, "plan": spec and not spark, "deployment": spec}
    chosen = [rule for rule in rules() if asked[rule.needs] and not (spark and rule.code == "SQL001")]
    graph_problems = [problem for rule in chosen if rule.code.startswith("GRAPH") for problem in found(rule, subject)]
    if broken := errors_in(graph_problems):
        return broken
    others = [problem for rule in chosen if not rule.code.startswith("GRAPH") for problem in found(rule, subject)]
    return tuple(graph_problems + others)


def found(rule: Rule, subject: Subject) -> Iterator[Problem]:
    """What one rule says. A rule that raises is a Problem of its own: it must not hide what the others find."""
    try:
        yield from rule(subject)
    except Exception as error:  # noqa: BLE001 - a bug in a rule may raise anything
        yield Problem(
            "CHECK002",
            f"the rule {rule.code} could not judge `{subject.pipeline.name}`: {type(error).__name__}: {error}",
            "report this bug with the text of the pipeline; every other rule was applied",
            subject.pipeline.origin.where,
            "warning",
        )


def judge_plans(subject: Subject, refused: Problem | None) -> tuple[Problem, ...]:
    """What the operators of queries tell, as Spark analysed them. Spark is the judge of what it runs.

    Its refusal is told in the words of our rules where one of them finds the cause, and nothing is refused that it
    accepts.
    """

    def told(kind: Kind) -> list[Problem]:
        chosen = [rule for rule in rules() if rule.needs == "plan" and rule.kind == kind]
        return [problem for rule in chosen for problem in found(rule, subject)]

    at_start, safety = told("start"), told("safety")
    causes = told("engine") or ([] if at_start else [refused]) if refused else []
    return (*causes, *at_start, *safety)
