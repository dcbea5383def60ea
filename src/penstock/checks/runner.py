"""Runs the rules. The list of their files is here, in the order in which Problems are best read."""

from __future__ import annotations

from types import ModuleType

from penstock.checks.rule import Rule, Subject
from penstock.checks.rules import checkpoints, files, graph, queries, records
from penstock.problems import Problem, errors_in

_TOPICS: tuple[ModuleType, ...] = (graph, queries, records, files, checkpoints)


def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of its file."""
    return tuple(value for topic in _TOPICS for value in vars(topic).values() if isinstance(value, Rule))


def judge(subject: Subject, *, spec: bool = True, disk: bool = False, quick_parser: bool = True) -> tuple[Problem, ...]:
    """What is wrong with a pipeline. A broken graph is told alone: everything else would follow from it."""
    chosen = [rule for rule in rules() if (spec if rule.needs == "spec" else disk)]
    if not quick_parser:
        chosen = [rule for rule in chosen if rule.code != "SQL001"]
    graph_problems = [problem for rule in chosen if rule.code.startswith("GRAPH") for problem in rule(subject)]
    if broken := errors_in(graph_problems):
        return broken
    others = [problem for rule in chosen if not rule.code.startswith("GRAPH") for problem in rule(subject)]
    return tuple(graph_problems + others)
