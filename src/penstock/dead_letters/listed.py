"""How many dead letters there are, by node and check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.dead_letters.letters import Brief, LetterFilter, once_each, to_briefs
from penstock.dead_letters.opened import Opened, require_node
from penstock.problems import Problem, errors_in


@dataclass(frozen=True)
class Group:
    """The letters of one node that failed one check."""

    pipeline: str
    node: str
    check: str
    letters: int
    replayed: int
    first: datetime | None
    last: datetime | None
    reason: str | None
    """Why one of them was put aside."""

    def to_json(self) -> dict[str, Any]:
        moments = {"first": self.first and self.first.isoformat(), "last": self.last and self.last.isoformat()}
        return vars(self) | moments


@dataclass(frozen=True)
class ListedLetters:
    """The greatest groups first."""

    groups: tuple[Group, ...]
    problems: tuple[Problem, ...] = ()
    """What is wrong with pipelines whose letters are not counted here."""

    @property
    def letters(self) -> int:
        return sum(group.letters for group in self.groups)

    def to_json(self) -> dict[str, Any]:
        told = {"problems": [problem.to_json() for problem in self.problems]} if self.problems else {}
        groups = [group.to_json() for group in self.groups]
        return {"ok": not errors_in(self.problems), "letters": self.letters, "groups": groups} | told


def listed_letters(project: Opened, node: str | None) -> ListedLetters:
    """How many letters there are, by node and check. Raises UserError."""
    groups: list[Group] = []
    for pipeline in project.pipelines:
        letters = to_briefs(LetterFilter(node).of(project.read(pipeline, Brief._fields)))
        groups += _counted(once_each(letters), pipeline.name, project.replayed(pipeline)) if letters else []
    if node is not None and not groups:
        require_node(node, project.pipelines)
    groups.sort(key=lambda group: (-group.letters, group.pipeline, group.node))
    return ListedLetters(tuple(groups), project.problems)


def _counted(letters: Iterable[Brief], pipeline: str, done: Mapping[str, str]) -> list[Group]:
    """Groups of letters that come oldest first."""
    grouped: dict[tuple[str, str], list[Brief]] = {}
    for letter in letters:
        grouped.setdefault((letter.node, letter.check), []).append(letter)
    return [
        Group(
            pipeline,
            node,
            check,
            len(members),
            sum(letter.id in done for letter in members),
            members[0].at,
            members[-1].at,
            members[0].reason,
        )
        for (node, check), members in grouped.items()
    ]
