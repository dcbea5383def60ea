"""Judges pipelines: by their text alone, or with Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.actions.look import look
from penstock.checks.rule import Disk, Subject, installed_spark
from penstock.checks.runner import judge
from penstock.engine import latency, resolve
from penstock.engine.latency import Profile
from penstock.guarantees import Guarantee
from penstock.paths import is_local
from penstock.pipeline.load import Loaded, load
from penstock.pipeline.model import Pipeline, Query, Sink, Source
from penstock.pipeline.plan import plan_of
from penstock.pipeline.project import Project
from penstock.problems import Fault, Problem, UserError, errors_in
from penstock.references import Mask

if TYPE_CHECKING:  # imported where they are used: a fast check pays for neither
    from penstock.engine.session import Engine
    from penstock.supervise.start import Ready
    from penstock.triggers import Trigger

StartEngine = Callable[[Project, tuple[str, ...], dict[str, str]], "Engine"]
"""Starts Spark for a project, with connectors and settings; the caller closes it."""


@dataclass(frozen=True)
class QuerySummary:
    """One line on a sink of a query."""

    pipeline: str
    query: str
    sink: str
    mode: str
    promise: str
    reason: str


@dataclass(frozen=True)
class QueryPlan:
    """How Spark would run a query."""

    pipeline: str
    query: str
    text: str
    stateful: tuple[str, ...]
    """The operators with state that Spark put in, the last one first."""
    settings: tuple[ChosenSetting, ...]


@dataclass(frozen=True)
class ChosenSetting:
    """The trigger of a query, or a setting of its session, and why it is so."""

    name: str
    value: str
    why: str
    costs: str


@dataclass(frozen=True)
class CheckResult:
    """What was looked at and what is wrong with it."""

    pipelines: tuple[str, ...]
    queries: tuple[QuerySummary, ...]
    problems: tuple[Problem, ...]
    fast: bool
    files: Mapping[str, str] = field(default_factory=dict)
    """By file, the pipeline that stands in it."""
    plans: tuple[QueryPlan, ...] = ()

    @property
    def ok(self) -> bool:
        return not errors_in(self.problems)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "fast": self.fast,
            "pipelines": list(self.pipelines),
            "queries": [vars(query) for query in self.queries],
            "problems": [problem.to_json() for problem in self.problems],
            **({"plans": [vars(plan) for plan in self.plans]} if self.plans else {}),
        }


@dataclass(frozen=True)
class Judged:
    """Pipelines that were judged without Spark: what a start needs, or why there can be none."""

    project: Project
    written: tuple[Pipeline, ...]
    resolved: tuple[Pipeline, ...] = ()
    disks: dict[str, Disk] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def pairs(self) -> list[tuple[Pipeline, Pipeline]]:
        """Each pipeline that can run, as written and as resolved."""
        written = {pipeline.name: pipeline for pipeline in self.written}
        return [(written[pipeline.name], pipeline) for pipeline in self.resolved]


def check(
    start: Path,
    selection: tuple[str, ...],
    environment: str | None,
    start_engine: StartEngine | None,
    show_plans: bool = False,
) -> CheckResult:
    """Every rule; with an engine Spark's own verdict too. Raises UserError when there is nothing to judge."""
    loaded = load(start, selection, environment)
    if start_engine is None:
        problems = judged_fast(loaded)
        return _result(loaded.pipelines, problems, fast=True)
    judged = judge_all(loaded)
    if errors_in(judged.problems):
        return _result(loaded.pipelines, judged.problems, fast=False)
    if unreachable := probed(judged):
        return _result(loaded.pipelines, (*judged.problems, *unreachable), fast=False)
    with resolve.masking(judged.project, os.environ):
        engine = start_engine(judged.project, *needs_of(judged))
    try:
        ready, refusals = build_with(engine, judged)
        plans = _plans(ready, judged.project) if show_plans else ()
        refusals += _slot_problems(ready, engine.cores)
    finally:
        engine.close()
    return _result(loaded.pipelines, (*judged.problems, *refusals), fast=False, plans=plans, ready=ready)


def _slot_problems(ready: list[Ready], cores: int) -> list[Problem]:
    """Pipeline by pipeline: which of them will run together, a check does not know."""
    from penstock.supervise.start import slot_problems

    names = dict.fromkeys(item.pipeline.name for item in ready)
    return [p for name in names for p in slot_problems([one for one in ready if one.pipeline.name == name], cores)]


def _plans(ready: list[Ready], project: Project) -> tuple[QueryPlan, ...]:
    from penstock.engine.plan_facts import explained

    mask = resolve.mask(project, os.environ)
    found = [(item, *explained(item.built.rows)) for item in ready]
    return tuple(
        QueryPlan(item.pipeline.name, item.built.query.name, mask(text), stateful, tuple(_chosen(item.profile, mask)))
        for item, text, stateful in found
    )


def _chosen(profile: Profile, mask: Mask) -> Iterator[ChosenSetting]:
    yield ChosenSetting("trigger", str(profile.trigger), profile.trigger_why, "")
    progress = {"async_progress": profile.async_progress} if profile.async_progress else {}
    for name, choice in (*progress.items(), *profile.choices.items()):
        yield ChosenSetting(name, mask(choice.value), choice.why, choice.costs)


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
    others = {id(other): _resolved_if_possible(other, loaded) for other in (*loaded.pipelines, *loaded.others)}
    for pipeline in loaded.pipelines:
        subject = _subject(loaded, pipeline)
        found = judge(subject, spark=True)
        problems += found
        if errors_in(found):
            continue
        try:
            real = resolve.pipeline(pipeline, loaded.project, os.environ)
            root = resolve.storage_root(loaded.project, os.environ)
            disks[pipeline.name] = _looked(loaded.project, real, root)
        except UserError as error:
            problems += error.problems
            continue
        resolved.append(real)
        # Once more with the paths that references stand for; what was told already is told at the same place.
        neighbours = tuple(others[id(other)] for other in subject.others)
        subject = Subject(loaded.project, real, neighbours, disks[pipeline.name], resolved=True)
        told = {(problem.code, problem.where) for problem in found}
        again = judge(subject, spark=True, disk=True)
        problems += [problem for problem in again if (problem.code, problem.where) not in told]
    masked = resolve.masked(problems, loaded.project, os.environ)
    return Judged(loaded.project, loaded.pipelines, tuple(resolved), disks, masked)


def probed(judged: Judged) -> tuple[Problem, ...]:
    """What cannot be reached of all that the pipelines read and write; found in seconds, before Spark starts."""
    nodes = [node for pipeline in judged.resolved for node in (*pipeline.sources, *pipeline.sinks)]
    with ThreadPoolExecutor(max_workers=8) as threads:
        found = [problem for problem in threads.map(_probed, nodes) if problem]
    return resolve.masked(dict.fromkeys(found), judged.project, os.environ)


def _probed(node: Source | Sink) -> Problem | None:
    try:
        node.spec.probe()
    except Fault as fault:
        return fault.at(node.origin.at(*fault.keys))
    return None


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


def needs_of(judged: Judged) -> tuple[tuple[str, ...], dict[str, str]]:
    """The connectors and the settings that a process for these pipelines starts with."""
    from penstock.engine.build import connectors_of

    catalogs = {name for catalog in judged.project.catalogs.values() for name in catalog.connectors}
    connections = {
        name
        for pipeline in judged.resolved
        for node in (*pipeline.sources, *pipeline.sinks)
        if (used := getattr(node.spec, "connection", None))
        for name in judged.project.connections[used].connectors
    }
    quick = {"local-fs"} if latency.wants_quick_files(judged.resolved) else set()
    connectors = tuple(sorted({*connectors_of(judged.resolved), *catalogs, *connections, *quick}))
    of_process = latency.process_settings(judged.resolved, installed_spark())
    return connectors, of_process | resolve.project_settings(judged.project, os.environ)


def build_with(engine: Engine, judged: Judged, trigger: Trigger | None = None) -> tuple[list[Ready], list[Problem]]:
    """Declares everything to Spark, with a last look at a storage that only Spark can reach."""
    from penstock.supervise.start import build_all

    root = resolve.storage_root(judged.project, os.environ)
    if not all(is_local(path) for path in (root, *_paths_of(judged))):
        try:
            for pipeline in judged.resolved:
                judged.disks[pipeline.name] = look(judged.project, pipeline, root, engine.storage)
        except OSError as error:
            return [], [_out_of_reach(root, error, judged.project)]
        subjects = [Subject(judged.project, pipeline, (), judged.disks[pipeline.name]) for pipeline in judged.resolved]
        found = [problem for subject in subjects for problem in judge(subject, disk=True, spec=False)]
        remote = [problem for problem in found if problem not in judged.problems]
        if errors_in(remote):
            return [], remote
    ready, problems = build_all(engine, judged.project, judged.pairs, judged.disks, trigger)
    return ready, list(resolve.masked(problems, judged.project, os.environ))


def _paths_of(judged: Judged) -> Iterator[str]:
    for pipeline in judged.resolved:
        for node in (*pipeline.sources, *pipeline.sinks):
            yield getattr(node.spec, "path", None) or ""


def _out_of_reach(root: str, error: OSError, project: Project) -> Problem:
    fix = "mend its address, or the settings under `spark:` that lead to it"
    return Problem(
        "CHECKPOINT002", f"the storage `{root}` cannot be reached: {error}", fix, project.origin.at("storage")
    )


def _subject(loaded: Loaded, pipeline: Pipeline) -> Subject:
    others = tuple(other for other in (*loaded.pipelines, *loaded.others) if other is not pipeline)
    return Subject(loaded.project, pipeline, others)


def _result(
    pipelines: tuple[Pipeline, ...],
    problems: tuple[Problem, ...],
    *,
    fast: bool,
    plans: tuple[QueryPlan, ...] = (),
    ready: Sequence[Ready] = (),
) -> CheckResult:
    known = {(item.pipeline.name, item.built.query.name): item.profile.interval for item in ready}

    def promised(pipeline: Pipeline, query: Query, sink: Sink) -> Guarantee:
        name = (pipeline.name, query.name)
        return pipeline.guarantee_of(query, sink, known[name] if name in known else _interval(pipeline, query))

    queries = tuple(
        QuerySummary(pipeline.name, query.name, f"{sink.name} ({sink.spec.type})", query.settings.mode,
                     *astuple(promised(pipeline, query, sink)))
        for pipeline in pipelines
        for query in pipeline.queries
        for sink in query.sinks
    )  # fmt: skip
    files = {pipeline.origin.where.file: pipeline.name for pipeline in pipelines}
    return CheckResult(tuple(pipeline.name for pipeline in pipelines), queries, problems, fast, files, plans)


def _interval(pipeline: Pipeline, query: Query) -> str | None:
    """How often progress is written down beside the work, as far as the text tells."""
    plan = plan_of(pipeline, query.name) if query.latency == "low" else None
    choice = latency.async_progress(pipeline, query, plan, query.settings.spark)
    return Profile(query.trigger, "", {}, choice).interval
