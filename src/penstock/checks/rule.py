"""What a rule is: a pure function from facts to Problems, with the two examples that are its docs and its test."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from penstock.facts.deployment import Deployment
from penstock.facts.operators import Operator
from penstock.facts.stored import BatchCode, CheckpointFacts, FolderFacts
from penstock.graph.project_graph import ProjectGraph, graph_of
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.pipeline.text_plan import plan_of_query
from penstock.problems import Problem, Severity, Where

Needs = Literal["spec", "disk", "plan", "deployment"]
"""What a rule judges by: the text alone; the disk as well; the operators of a query, which Spark or SQL alone tell; or
the text with where the project runs."""
Kind = Literal["engine", "start", "safety"]
"""Does Spark refuse it when it is asked, or only when it starts; or does Spark accept what people come to regret?"""


@cache
def installed_spark() -> str:
    """The minor version of the PySpark that is installed, without loading it."""
    try:
        return ".".join(version("pyspark").split(".")[:2])
    except PackageNotFoundError:
        return "4.1"


@dataclass(frozen=True)
class Disk:
    """What was found on disk, by absolute path and by query."""

    folders: Mapping[str, FolderFacts] = field(default_factory=dict)
    checkpoints: Mapping[str, CheckpointFacts] = field(default_factory=dict)
    orphans: tuple[str, ...] = ()
    """Checkpoints of this pipeline that no query of it owns."""
    storage: FolderFacts | None = None
    batch_code: Mapping[str, BatchCode] = field(default_factory=dict)
    """By sink, the function that gets its batches."""


@dataclass(frozen=True)
class Subject:
    """All that a rule may look at."""

    project: Project
    pipeline: Pipeline
    others: tuple[Pipeline, ...] = ()
    """The other pipelines of the project."""
    disk: Disk = field(default_factory=Disk)
    plans: Mapping[str, Operator] | None = None
    """The operators of each query as Spark analysed it; without them, what the SQL tells."""
    spark: str = field(default_factory=installed_spark)
    """The Spark that will run it, such as `4.1`."""
    cores: int | None = None
    resolved: bool = False
    """Stand values in the place of references?"""
    deployment: Deployment = field(default_factory=Deployment)
    graph: ProjectGraph | None = None
    """What joins all of these pipelines, where it is known already."""

    @cached_property
    def joined(self) -> ProjectGraph:
        """What joins the pipelines of the project."""
        environ = self.project.values(os.environ)
        return self.graph or graph_of((self.pipeline, *self.others), self.project, environ)

    def plan(self, query: Query) -> Operator | None:
        """The operators of a query, or None where only Spark can tell."""
        return self.plans.get(query.name) if self.plans is not None else self.written.get(query.name)

    def planned(self) -> Iterator[tuple[Query, Operator]]:
        """Each query that streams and whose operators are known."""
        for query in self.pipeline.queries:
            plan = self.plan(query)
            if plan is not None and plan.is_streaming:
                yield query, plan

    @property
    def slots(self) -> int:
        """How many tasks run at once; without Spark, what a large machine has."""
        return self.cores or 64

    @cached_property
    def written(self) -> dict[str, Operator]:
        """The operators of each query as its SQL tells them, with functions as they are called there."""
        found = {query.name: plan_of_query(self.pipeline, query.name) for query in self.pipeline.queries}
        return {name: plan for name, plan in found.items() if plan is not None}

    def spark_is_at_least(self, *version: int) -> bool:
        return tuple(map(int, self.spark.split("."))) >= version

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
    kind: Kind
    guide: str
    """The section of Spark's guide that it comes from."""
    check: Check = field(compare=False)

    def __call__(self, subject: Subject) -> Iterator[Problem]:
        return self.check(subject)


Finding = tuple[str, str, Where | None]
"""Message, fix and place: what a rule's function yields."""


def rule(
    code: str,
    severity: Severity = "error",
    *,
    needs: Needs = "spec",
    kind: Kind = "safety",
    guide: str = "",
    wrong: str = "",
    right: str = "",
) -> Callable[[Callable[[Subject], Iterator[Finding]]], Rule]:
    """Makes a rule of a function; the first line of its docstring is the title, the rest says why."""

    def made(function: Callable[[Subject], Iterator[Finding]]) -> Rule:
        title, _, why = inspect.cleandoc(function.__doc__ or "").partition("\n\n")

        def check(subject: Subject) -> Iterator[Problem]:
            for message, fix, where in function(subject):
                yield Problem(code, message, fix, where, severity)

        examples = (inspect.cleandoc(wrong), inspect.cleandoc(right))
        return Rule(code, severity, title.rstrip("."), why, *examples, needs, kind, guide, check)

    return made
