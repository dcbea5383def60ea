"""Where in the user's text an operator stands."""

from __future__ import annotations

import re

from penstock.checks.rule import Subject
from penstock.facts.operators import Operator
from penstock.pipeline.model import Query, Step
from penstock.problems import Where
from penstock.transforms.sql import Sql


def of_operator(subject: Subject, operator: Operator, word: str = "") -> Where:
    """The node that has it; in SQL the place of `word`, a pattern, where it is found."""
    node = subject.pipeline.nodes.get(operator.node)
    if not isinstance(node, Step):
        return node.origin.where if node else subject.pipeline.origin.where
    text = node.origin.at(node.spec.key)
    if isinstance(node.spec, Sql) and word and (found := re.search(word, node.spec.sql, re.IGNORECASE)):
        before = node.spec.sql[: found.start()]
        return text.inside(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1))
    return text


def of_mode(query: Query) -> Where:
    """Where the output mode is set, or the query."""
    return query.origin.at("mode")
