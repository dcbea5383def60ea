"""What a rule is: a pure function from facts to Problems, with the two examples that are its docs and its test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.facts import CheckpointFacts, FolderFacts
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project
from penstock.problems import Problem, Severity, Where

Needs = Literal["spec", "disk"]


@dataclass(frozen=True)
class Disk:
    """What was found on disk, by absolute path and by query."""

    folders: Mapping[str, FolderFacts] = field(default_factory=dict)
    checkpoints: Mapping[str, CheckpointFacts] = field(default_factory=dict)
    orphans: tuple[str, ...] = ()
    """Checkpoints of this pipeline that no query of it owns."""
    storage: FolderFacts | None = None


@dataclass(frozen=True)
class Subject:
    """All that a rule may look at."""

    project: Project
    pipeline: Pipeline
    others: tuple[Pipeline, ...] = ()
    """The other pipelines of the project."""
    disk: Disk = field(default_factory=Disk)

    def path(self, written: str) -> str:
        return self.project.absolute(written)


Check = Callable[[Subject], Iterator[Problem]]


@dataclass(frozen=True)
class Rule:
    """A rule as it is listed, run and documented."""

    code: str
    severity: Severity
    title: str
    why: str
    wrong: str
    """A pipeline that breaks it, or a word on what does."""
    right: str
    needs: Needs
    check: Check = field(compare=False)

    def __call__(self, subject: Subject) -> Iterator[Problem]:
        return self.check(subject)


Finding = tuple[str, str, Where | None]
"""Message, fix and place: what a rule's function yields."""


def rule(
    code: str, severity: Severity = "error", *, needs: Needs = "spec", wrong: str = "", right: str = ""
) -> Callable[[Callable[[Subject], Iterator[Finding]]], Rule]:
    """Makes a rule of a function; the first line of its docstring is the title, the rest says why."""

    def made(function: Callable[[Subject], Iterator[Finding]]) -> Rule:
        title, _, why = inspect.cleandoc(function.__doc__ or "").partition("\n\n")

        def check(subject: Subject) -> Iterator[Problem]:
            for message, fix, where in function(subject):
                yield Problem(code, message, fix, where, severity)

        return Rule(
            code, severity, title.rstrip("."), why, inspect.cleandoc(wrong), inspect.cleandoc(right), needs, check
        )

    return made
