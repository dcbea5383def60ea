"""Plans a start: what it would do to each checkpoint, without doing it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine import resolve
from penstock.pipeline.load import load
from penstock.pipeline.model import Pipeline
from penstock.pipeline.text_plan import plan_of_query
from penstock.plan.resumable import resumable_findings
from penstock.plan.verdict import PlanFinding, QueryPlan, worst
from penstock.prepare.judging import Judged, judge_all
from penstock.prepare.look import local_only
from penstock.prepare.needs import StartEngine, needs_of
from penstock.prepare.outlook import plan_query
from penstock.prepare.probing import probed_by_pipeline
from penstock.problems import Problem, errors_in

if TYPE_CHECKING:
    from penstock.engine.session import Engine
    from penstock.prepare.ready import Ready


@dataclass(frozen=True)
class PlanResult:
    """One plan for each query, and what is wrong beside them."""

    queries: tuple[QueryPlan, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
    fast: bool = False

    @property
    def ok(self) -> bool:
        return not errors_in(self.problems) and not any(query.stops for query in self.queries)

    @property
    def verdict(self) -> str:
        return worst(query.verdict for query in self.queries) if self.queries else "refuse"

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "fast": self.fast,
            "queries": [query.to_json() for query in self.queries],
            "problems": [problem.to_json() for problem in self.problems],
        }


def plan(
    start: Path, selection: tuple[str, ...], environment: str | None, start_engine: StartEngine | None
) -> PlanResult:
    """What `run` would do. Without an engine, what the text and the disk tell. Raises UserError."""
    loaded = load(start, selection, environment)
    judged = judge_all(loaded)
    if start_engine is None:
        queries = tuple(query for pair in judged.pairs for query in _by_text(judged, *pair))
        return PlanResult(_with_refused(judged, queries, judged.problems), judged.problems, fast=True)
    sound = judged.without(judged.broken)
    away = probed_by_pipeline(sound)
    problems = [*judged.problems, *dict.fromkeys(one for found in away.values() for one in found)]
    sound = sound.without(away)
    queries = ()
    if sound.resolved:
        with resolve.masking(judged.project, os.environ):
            engine = start_engine(sound.project, *needs_of(sound))
            try:
                from penstock.prepare.ready import build_with

                ready, refusals = build_with(engine, sound)
                queries = tuple(_with_ends(engine, sound, item) for item in ready)
            finally:
                engine.close()
        planned = {problem for query in queries for problem in query.problems}
        problems += [one for one in refusals if one not in planned]
    return PlanResult(_with_refused(judged, queries, tuple(problems)), tuple(problems))


def _with_ends(engine: Engine, judged: Judged, item: Ready) -> QueryPlan:
    """The plan with what the checkpoint's files show, and what the sinks say of the rows that they would get."""
    from penstock.engine.build import judge_sinks

    query = item.built.query
    known = judged.disks[item.pipeline.name].checkpoints.get(query.name)
    found: list[PlanFinding] = []
    if known is not None and not item.pipeline.is_ephemeral(query):
        storage = engine.storage(known.path)
        found += resumable_findings(item.pipeline, query, known, storage, engine.storage, item.built.session)
    if not item.waits:
        found += (
            PlanFinding(one.code, query.name, one.message, one.fix, "refuse", one.where)
            for one in judge_sinks(item.built)
            if one.severity == "error"
        )
    return replace(item.plan, findings=(*item.plan.findings, *found))


def _by_text(judged: Judged, written: Pipeline, pipeline: Pipeline) -> Iterator[QueryPlan]:
    checkpoints = judged.disks[pipeline.name].checkpoints
    for query in pipeline.queries:
        if pipeline.is_ephemeral(query):
            yield QueryPlan(pipeline.name, query.name, is_new=True, promise=pipeline.guarantee_of(query).promise)
            continue
        known = checkpoints.get(query.name)
        plan = plan_query(judged.project, written, pipeline, query, known, None, plan_of_query(pipeline, query.name))
        storage = local_only(known.path) if known is not None else None
        if known is not None and storage is not None:
            found = resumable_findings(pipeline, query, known, storage, local_only)
            plan = replace(plan, findings=(*plan.findings, *found))
        yield plan


def _with_refused(
    judged: Judged, queries: tuple[QueryPlan, ...], problems: tuple[Problem, ...]
) -> tuple[QueryPlan, ...]:
    """With a plan for each query that could not be judged: a start would refuse it."""
    known = {(one.pipeline, one.query): one for one in queries}
    found: list[QueryPlan] = []
    errors = errors_in(problems)
    for pipeline in judged.written:
        for query in pipeline.queries:
            plan = known.get((pipeline.name, query.name))
            if plan is not None and pipeline.name not in judged.broken:
                found.append(plan)
                continue
            mine = [one for one in errors if one.where is None or one.where.file == pipeline.origin.where.file]
            mine = mine or list(errors)  # in a file of Python or SQL
            refused = (PlanFinding(one.code, query.name, one.message, one.fix, "refuse", one.where) for one in mine)
            found.append(QueryPlan(pipeline.name, query.name, tuple(refused)))
    return tuple(found)
