"""Judges pipelines: by their text alone, or with Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine import latency, resolve
from penstock.engine.latency import Profile
from penstock.notation.references import Mask
from penstock.pipeline.load import Loaded, load
from penstock.pipeline.model import Pipeline, Query, Sink
from penstock.pipeline.project import Project
from penstock.pipeline.text_plan import plan_of_query
from penstock.prepare.judging import judge_all, judged_fast
from penstock.prepare.needs import StartEngine, needs_of
from penstock.prepare.probing import not_judged_offline, probed_by_pipeline
from penstock.problems import Problem, errors_in
from penstock.query.guarantees import Guarantee

if TYPE_CHECKING:  # imported where they are used: a fast check pays for neither
    from penstock.prepare.ready import Ready


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
class SparkPlan:
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


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What was looked at and what is wrong with it. A prompt and a notebook show it for people."""

    pipelines: tuple[str, ...]
    queries: tuple[QuerySummary, ...]
    problems: tuple[Problem, ...]
    fast: bool
    files: Mapping[str, str] = field(default_factory=dict)
    """By file, the pipeline that stands in it."""
    plans: tuple[SparkPlan, ...] = ()

    def __repr__(self) -> str:
        from penstock.screens.reprs import check_text

        return check_text(self)

    def _repr_html_(self) -> str:
        from penstock.screens.html import check_html

        return check_html(self)

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


def check(
    start: Path,
    selection: tuple[str, ...],
    environment: str | None,
    start_engine: StartEngine | None,
    show_plans: bool = False,
    offline: bool = False,
) -> CheckResult:
    """Every rule; with an engine Spark's own verdict too. Raises UserError when there is nothing to judge.

    A pipeline with an error is left out where Spark judges the others. Offline, no service is asked.
    """
    return check_loaded(load(start, selection, environment), start_engine, show_plans, offline)


def check_loaded(
    loaded: Loaded, start_engine: StartEngine | None, show_plans: bool = False, offline: bool = False
) -> CheckResult:
    """The same for pipelines that are there already."""
    if start_engine is None:
        problems = judged_fast(loaded)
        return _result(loaded, problems, fast=True)
    judged = judge_all(loaded)
    sound = judged.without(judged.broken)
    left_out = not_judged_offline(sound) if offline else probed_by_pipeline(sound)
    problems = (*judged.problems, *dict.fromkeys(problem for found in left_out.values() for problem in found))
    sound = sound.without(left_out)
    if not sound.resolved:
        return _result(loaded, problems, fast=False)
    with resolve.masking(judged.project, os.environ):
        engine = start_engine(sound.project, *needs_of(sound, with_upstream=True))
    try:
        from penstock.prepare.ready import build_with

        ready, refusals = build_with(engine, sound, to_run=False)
        plans = _plans(ready, sound.project) if show_plans else ()
        if not offline:  # how many cores a query holds is asked of its broker, and what a table has of the table
            refusals += _slot_problems(ready, engine.cores)
            refusals += _sink_problems(ready, refusals, sound.project)
    finally:
        engine.close()
    return _result(loaded, (*problems, *refusals), fast=False, plans=plans, ready=ready)


def _slot_problems(ready: list[Ready], cores: int) -> list[Problem]:
    """Pipeline by pipeline: which of them will run together, a check does not know."""
    from penstock.prepare.ready import slot_problems

    names = dict.fromkeys(item.pipeline.name for item in ready)
    return [p for name in names for p in slot_problems([one for one in ready if one.pipeline.name == name], cores)]


def _sink_problems(ready: list[Ready], known: Sequence[Problem], project: Project) -> list[Problem]:
    """What the sinks say of the rows that they would get, where nothing is known to be wrong yet.

    A query that reads what another has still to make is judged when it starts.
    """
    from penstock.engine.build import judge_sinks

    places = {problem.where for problem in errors_in(known)}
    said = [one for item in ready if not item.waits for one in judge_sinks(item.built) if one.where not in places]
    return list(dict.fromkeys(resolve.masked(said, project, os.environ)))


def _plans(ready: list[Ready], project: Project) -> tuple[SparkPlan, ...]:
    from penstock.engine.plan_facts import explained

    mask = resolve.mask(project, os.environ)
    found = [(item, *explained(item.built.rows)) for item in ready]
    return tuple(
        SparkPlan(item.pipeline.name, item.built.query.name, mask(text), stateful, tuple(_chosen(item.profile, mask)))
        for item, text, stateful in found
    )


def _chosen(profile: Profile, mask: Mask) -> Iterator[ChosenSetting]:
    yield ChosenSetting("trigger", str(profile.trigger), profile.trigger_why, "")
    progress = {"async_progress": profile.async_progress} if profile.async_progress else {}
    for name, choice in (*progress.items(), *profile.choices.items()):
        yield ChosenSetting(name, mask(choice.value), choice.why, choice.costs)


def _result(
    loaded: Loaded,
    problems: tuple[Problem, ...],
    *,
    fast: bool,
    plans: tuple[SparkPlan, ...] = (),
    ready: Sequence[Ready] = (),
) -> CheckResult:
    pipelines = loaded.pipelines
    queries = tuple(one for one in summaries_of(pipelines, ready) if _is_chosen(loaded, one))
    files = {pipeline.origin.where.file: pipeline.name for pipeline in pipelines}
    return CheckResult(tuple(pipeline.name for pipeline in pipelines), queries, problems, fast, files, plans)


def _is_chosen(loaded: Loaded, summary: QuerySummary) -> bool:
    return loaded.chosen is None or summary.query in loaded.chosen.get(summary.pipeline, ())


def summaries_of(pipelines: tuple[Pipeline, ...], ready: Sequence[Ready] = ()) -> tuple[QuerySummary, ...]:
    """What each query promises of each of its sinks: as it was built, or as far as the text tells."""
    known = {(item.pipeline.name, item.built.query.name): item.profile.interval for item in ready}

    def promised(pipeline: Pipeline, query: Query, sink: Sink) -> Guarantee:
        name = (pipeline.name, query.name)
        return pipeline.guarantee_of(query, sink, known[name] if name in known else _interval(pipeline, query))

    return tuple(
        QuerySummary(pipeline.name, query.name, f"{sink.name} ({sink.spec.type})", query.settings.mode,
                     *astuple(promised(pipeline, query, sink)))
        for pipeline in pipelines
        for query in pipeline.queries
        for sink in query.sinks
    )  # fmt: skip


def _interval(pipeline: Pipeline, query: Query) -> str | None:
    """How often progress is written down beside the work, as far as the text tells."""
    plan = plan_of_query(pipeline, query.name) if query.latency == "low" else None
    choice = latency.async_progress(pipeline, query, plan, query.settings.spark)
    return Profile(query.trigger, "", {}, choice).interval
