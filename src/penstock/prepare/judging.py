"""Judges pipelines without Spark: by their text, then by the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from penstock.checks.every_rule import judge
from penstock.checks.rule import Disk, Subject
from penstock.engine import resolve
from penstock.graph.project_graph import ProjectGraph, graph_of
from penstock.pipeline.load import Loaded
from penstock.pipeline.model import Pipeline, Sink, Source
from penstock.pipeline.project import Project
from penstock.prepare.look import look
from penstock.problems import Problem, UserError, errors_in


@dataclass(frozen=True)
class Judged:
    """Pipelines that were judged without Spark: what a start needs, or why there can be none."""

    project: Project
    written: tuple[Pipeline, ...]
    resolved: tuple[Pipeline, ...] = ()
    disks: dict[str, Disk] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()
    """The pipelines with an error."""
    graph: ProjectGraph = ProjectGraph((), ())
    """All pipelines of the project, resolved where they can be, and what joins them."""
    chosen: Mapping[str, frozenset[str]] | None = None
    """By pipeline, the queries that were asked for; None: all of them."""

    def without(self, names: Collection[str]) -> Judged:
        """The same with fewer pipelines to start; what was found stays."""
        return replace(self, resolved=tuple(one for one in self.resolved if one.name not in names))

    def is_chosen(self, pipeline: str, query: str) -> bool:
        """Was this query asked for?"""
        return self.chosen is None or query in self.chosen.get(pipeline, ())

    def used(self, pipeline: Pipeline) -> tuple[Source | Sink, ...]:
        """The sources and sinks of its queries that were asked for."""
        if self.chosen is None:
            return (*pipeline.sources, *pipeline.sinks)
        queries = [query for query in pipeline.queries if self.is_chosen(pipeline.name, query.name)]
        sources = {source.name: source for query in queries for source in pipeline.sources_of(query.name)}
        return (*sources.values(), *(sink for query in queries for sink in query.sinks))

    @property
    def feeding(self) -> tuple[Pipeline, ...]:
        """Other pipelines of the project that feed these."""
        names = {pipeline.name for pipeline in self.resolved}
        nodes = self.graph.ancestors([node for node in self.graph.nodes if node[0] in names])
        owners = {pipeline for pipeline, _ in nodes} - names
        return tuple(pipeline for pipeline in self.graph.pipelines if pipeline.name in owners)

    @property
    def pairs(self) -> list[tuple[Pipeline, Pipeline]]:
        """Each pipeline that can run, as written and as resolved."""
        written = {pipeline.name: pipeline for pipeline in self.written}
        return [(written[pipeline.name], pipeline) for pipeline in self.resolved]


def judged_fast(loaded: Loaded) -> tuple[Problem, ...]:
    """What the text and the local disk tell: no JVM, no variables."""
    problems = list(loaded.problems)
    try:
        root: str | None = resolve.storage_root(loaded.project, os.environ)
    except UserError:
        root = None  # a reference that only the engine needs
    for pipeline in loaded.pipelines:
        subject = _subject(loaded, pipeline)
        found = judge(subject)
        problems += found
        if not errors_in(found):
            problems += _on_disk(subject, root)
    return tuple(dict.fromkeys(problems))


def judge_all(loaded: Loaded) -> Judged:
    """The same with every reference resolved; Spark's parser will judge the SQL."""
    problems = list(loaded.problems)
    resolved: list[Pipeline] = []
    disks: dict[str, Disk] = {}
    broken: set[str] = set()
    others = {id(other): _resolved_if_possible(other, loaded) for other in (*loaded.pipelines, *loaded.others)}
    graph = graph_of(others.values(), loaded.project, loaded.project.values(os.environ))
    for pipeline in loaded.pipelines:
        subject = _subject(loaded, pipeline)
        found = judge(subject, spark=True)
        problems += found
        if errors_in(found):
            broken.add(pipeline.name)
            continue
        try:
            real = resolve.pipeline(pipeline, loaded.project, os.environ)
            root = resolve.storage_root(loaded.project, os.environ)
            disks[pipeline.name] = _looked(loaded.project, real, root)
        except UserError as error:
            problems += error.problems
            broken.add(pipeline.name)
            continue
        resolved.append(real)
        # Once more with the paths that references stand for; what was told already is told at the same place.
        neighbours = tuple(others[id(other)] for other in subject.others)
        subject = replace(
            subject, pipeline=real, others=neighbours, disk=disks[pipeline.name], resolved=True, graph=graph
        )
        told = {(problem.code, problem.where) for problem in found}
        again = judge(subject, spark=True, disk=True)
        new = [problem for problem in again if (problem.code, problem.where) not in told]
        problems += new
        if errors_in(new):
            broken.add(pipeline.name)
    masked = resolve.masked(dict.fromkeys(problems), loaded.project, os.environ)
    return Judged(
        loaded.project, loaded.pipelines, tuple(resolved), disks, masked, frozenset(broken), graph, loaded.chosen
    )


def _on_disk(subject: Subject, root: str | None) -> tuple[Problem, ...]:
    try:
        disk = _looked(subject.project, subject.pipeline, root)
    except UserError as error:
        return error.problems
    return judge(replace(subject, disk=disk), disk=True, spec=False)


def _looked(project: Project, pipeline: Pipeline, root: str | None) -> Disk:
    try:
        return look(project, pipeline, root)
    except OSError as error:
        if error.errno == errno.ELOOP:
            message, fix = f"`{error.filename}` is a link that leads to itself", f"remove it: `rm {error.filename}`"
        else:
            message = f"`{error.filename}` cannot be looked at: {error.strerror or error}"
            fix = f"give this user the right to read it: `chmod u+r {error.filename}`"
        raise UserError(Problem("PROJECT008", message, fix, pipeline.origin.where)) from None


def _resolved_if_possible(pipeline: Pipeline, loaded: Loaded) -> Pipeline:
    try:
        return resolve.pipeline(pipeline, loaded.project, os.environ)
    except (UserError, KeyError):
        return pipeline


def _subject(loaded: Loaded, pipeline: Pipeline) -> Subject:
    others = tuple(other for other in (*loaded.pipelines, *loaded.others) if other is not pipeline)
    deployment = resolve.deployment(loaded.project, os.environ)
    return Subject(loaded.project, pipeline, others, graph=loaded.graph, deployment=deployment)
