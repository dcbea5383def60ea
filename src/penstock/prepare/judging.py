"""Judges pipelines without Spark: by their text, then by the disk."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from penstock.checks.every_rule import judge
from penstock.checks.rule import Disk, Subject
from penstock.engine import resolve
from penstock.pipeline.load import Loaded
from penstock.pipeline.model import Pipeline
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

    def without(self, names: Collection[str]) -> Judged:
        """The same with fewer pipelines to start; what was found stays."""
        return replace(self, resolved=tuple(one for one in self.resolved if one.name not in names))

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
    return tuple(problems)


def judge_all(loaded: Loaded) -> Judged:
    """The same with every reference resolved; Spark's parser will judge the SQL."""
    problems = list(loaded.problems)
    resolved: list[Pipeline] = []
    disks: dict[str, Disk] = {}
    broken: set[str] = set()
    others = {id(other): _resolved_if_possible(other, loaded) for other in (*loaded.pipelines, *loaded.others)}
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
        subject = Subject(loaded.project, real, neighbours, disks[pipeline.name], resolved=True)
        told = {(problem.code, problem.where) for problem in found}
        again = judge(subject, spark=True, disk=True)
        new = [problem for problem in again if (problem.code, problem.where) not in told]
        problems += new
        if errors_in(new):
            broken.add(pipeline.name)
    masked = resolve.masked(problems, loaded.project, os.environ)
    return Judged(loaded.project, loaded.pipelines, tuple(resolved), disks, masked, frozenset(broken))


def _on_disk(subject: Subject, root: str | None) -> tuple[Problem, ...]:
    try:
        disk = _looked(subject.project, subject.pipeline, root)
    except UserError as error:
        return error.problems
    return judge(Subject(subject.project, subject.pipeline, subject.others, disk), disk=True, spec=False)


def _looked(project: Project, pipeline: Pipeline, root: str | None) -> Disk:
    try:
        return look(project, pipeline, root)
    except OSError as error:
        message = f"`{error.filename}` cannot be looked at: {error.strerror or error}"
        raise UserError(
            Problem("PROJECT008", message, "give this user the right to read it", pipeline.origin.where)
        ) from None


def _resolved_if_possible(pipeline: Pipeline, loaded: Loaded) -> Pipeline:
    try:
        return resolve.pipeline(pipeline, loaded.project, os.environ)
    except (UserError, KeyError):
        return pipeline


def _subject(loaded: Loaded, pipeline: Pipeline) -> Subject:
    others = tuple(other for other in (*loaded.pipelines, *loaded.others) if other is not pipeline)
    return Subject(loaded.project, pipeline, others)
