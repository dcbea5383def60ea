"""Declares every query to Spark, before one is started: what is wrong with one is told before any has written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.checks.every_rule import judge, judge_plans
from penstock.checks.rule import Subject
from penstock.engine import build, resolve
from penstock.engine.latency import Profile, async_progress, profile
from penstock.engine.session import Engine
from penstock.facts.signature import Recorded
from penstock.facts.stored import CheckpointFacts
from penstock.facts.streams import only_processes
from penstock.graph.project_graph import NodeName
from penstock.notation.paths import is_local
from penstock.pipeline.load import use_modules_of
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.plan.verdict import QueryPlan
from penstock.prepare import cores as held_cores
from penstock.prepare.judging import Judged
from penstock.prepare.look import look
from penstock.prepare.outlook import plan_query, recorded_now
from penstock.prepare.processor_state import processes_of, state_problems
from penstock.prepare.sharing import sharing_problems
from penstock.prepare.signing import signature_of
from penstock.prepare.upstream import Upstream, make_for_readers
from penstock.problems import Problem, UserError, did_you_mean, errors_in
from penstock.query.restarts import Policy
from penstock.query.state_store import ENCODING, FORMAT
from penstock.query.triggers import Trigger
from penstock.user_code import load_code


@dataclass(frozen=True)
class Ready:
    """A query that is built and not yet started."""

    pipeline: Pipeline
    written: Pipeline
    """The same as the user wrote it: with references in place of what they resolve to."""
    built: build.Built
    profile: Profile
    policy: Policy
    plan: QueryPlan
    recorded: Recorded
    """What its checkpoint's manifest records at a start."""
    listeners: tuple[Any, ...] = ()
    waits: bool = False
    """Stand rows in for a source of it, which another query is still to make?"""

    @property
    def node(self) -> NodeName:
        return self.pipeline.name, self.built.query.name


def build_with(
    engine: Engine, judged: Judged, trigger: Trigger | None = None, *, to_run: bool = True
) -> tuple[list[Ready], list[Problem]]:
    """Declares everything to Spark, with a last look at a storage that only Spark can reach."""
    if problems := sharing_problems(engine, judged):
        return [], list(resolve.masked(problems, judged.project, os.environ))
    root = resolve.storage_root(judged.project, os.environ)
    remote: list[Problem] = []
    if not all(is_local(path) for path in (root, *_paths_of(judged))):
        try:
            for pipeline in judged.resolved:
                judged.disks[pipeline.name] = look(judged.project, pipeline, root, engine.storage)
        except OSError as error:
            return [], [_out_of_reach(root, error, judged.project)]
        broken = set()
        for pipeline in judged.resolved:
            subject = Subject(judged.project, pipeline, (), judged.disks[pipeline.name])
            found = [problem for problem in judge(subject, disk=True, spec=False) if problem not in judged.problems]
            remote += found
            if errors_in(found):
                broken.add(pipeline.name)
        judged = judged.without(broken)
    ready, problems = build_all(engine, judged, trigger, to_run=to_run)
    return ready, [*remote, *resolve.masked(problems, judged.project, os.environ)]


def _paths_of(judged: Judged) -> Iterator[str]:
    for pipeline in judged.resolved:
        for node in (*pipeline.sources, *pipeline.sinks):
            yield getattr(node.spec, "path", None) or ""


def _out_of_reach(root: str, error: OSError, project: Project) -> Problem:
    fix = "correct the address, or the settings under `spark:` that lead to it"
    return Problem("CHECKPOINT002", f"`storage: {root}` cannot be reached: {error}", fix, project.origin.at("storage"))


def build_all(
    engine: Engine, judged: Judged, trigger: Trigger | None = None, *, to_run: bool = True
) -> tuple[list[Ready], list[Problem]]:
    """Every query that was asked for, declared to Spark; and what Spark says against them.

    `trigger` is the one that the run asks for, in place of each query's own. One that reads what another will write is
    judged by the columns that it will have. What is to run must be among the queries that were asked for.
    """
    ready: list[Ready] = []
    project, problems = judged.project, list[Problem]()
    use_modules_of(project.root)
    engine.use_modules_of(project.root)
    pairs = {pipeline.name: (written, pipeline) for written, pipeline in judged.pairs}
    upstream = _upstream(engine, judged, to_run=to_run)
    listeners: dict[str, tuple[Any, ...]] = {}
    for name, (_, pipeline) in pairs.items():
        try:
            listeners[name] = tuple(_listeners((*project.listeners, *pipeline.listeners), pipeline))
        except UserError as error:
            problems += error.problems
    asked = [(n, q.name) for n in listeners for q in pairs[n][1].queries if judged.is_chosen(n, q.name)]
    for name, query_name in (one for stage in judged.graph.stages(asked) for one in stage):
        written, pipeline = pairs[name]
        query = next(one for one in pipeline.queries if one.name == query_name)
        born = judged.disks[name].checkpoints.get(query.name) if name in judged.disks else None
        upstream.begin((name, query.name))
        try:
            instead = upstream.instead((name, query.name))
            built, chosen = _declared(engine, project, pipeline, query, born, trigger, instead)
            upstream.know((name, query.name), built)
            subject = Subject(project, pipeline, plans={query.name: built.plan}, cores=engine.cores)
            problems += judge_plans(subject, build.refusal(built))
            problems += _missing_partition_columns(built)
            problems += upstream.problems_of((name, query.name), built)
            of_state = list(state_problems(pipeline, built, born, engine.storage(born.path) if born else None))
            problems += of_state
            plan, recorded = _planned(engine, project, written, built, pipeline, chosen.settings, born)
            if errors_in(of_state):  # they say more about a processor than the plan does
                plan = plan.without("PLAN002", "PLAN003", "PLAN009", "PLAN030")
        except UserError as error:
            problems += upstream.told_with_both_ends((name, query.name), error)
            upstream.know((name, query.name), None)
            continue
        except Exception as error:  # noqa: BLE001 - a bug in one query must not hide what is wrong with the others
            problems.append(_not_judged(query, error))
            upstream.know((name, query.name), None)
            continue
        policy = resolve.policy(project, pipeline, query, os.environ)
        waits = (name, query.name) in upstream.waiting
        problems += plan.problems
        ready.append(Ready(pipeline, written, built, chosen, policy, plan, recorded, listeners[name], waits))
    return ready, _without_repeats(problems)


def _upstream(engine: Engine, judged: Judged, *, to_run: bool) -> Upstream:
    """What is fed by whom. A check may declare queries too that were not asked for."""
    can_run = {pipeline.name for pipeline in judged.resolved}

    def is_in_the_run(query: NodeName) -> bool:
        return query[0] in can_run and judged.is_chosen(*query)

    def declare(query: NodeName) -> build.Built:
        pipeline = judged.graph.by_name[query[0]]
        found = next(one for one in pipeline.queries if one.name == query[1])
        instead = upstream.instead(query)
        return _declared(engine, judged.project, pipeline, found, None, None, instead)[0]

    upstream = Upstream(judged.graph, declare, is_in_the_run if to_run else lambda query: True)
    for pipeline in judged.written:
        if pipeline.name not in can_run:  # its own Problems are told
            for query in pipeline.queries:
                upstream.know((pipeline.name, query.name), None)
    return upstream


def rebuilt(engine: Engine, judged: Judged, item: Ready, trigger: Trigger | None) -> Ready:
    """The same query over what its sources hold by now. Raises UserError."""
    name, query = item.pipeline.name, item.built.query
    born = judged.disks[name].checkpoints.get(query.name) if name in judged.disks else None
    built, chosen = _declared(engine, judged.project, item.pipeline, query, born, trigger)
    plan, recorded = _planned(engine, judged.project, item.written, built, item.pipeline, chosen.settings, born)
    if plan.stops:
        raise UserError(plan.problems)
    return replace(item, built=built, profile=chosen, plan=plan, recorded=recorded, waits=False)


def made_for_readers(
    engine: Engine, judged: Judged, ready: Sequence[Ready], trigger: Trigger | None
) -> tuple[list[Ready], list[Problem]]:
    """Makes the tables that queries read from others that start with them, then declares those queries over them."""
    waiting = {item.node for item in ready if item.waits}
    if not waiting:
        return list(ready), []
    joints = [joint for query in waiting for joint in judged.graph.joints_into(query)]
    problems: list[Problem] = []
    for item in ready:
        read = {joint.sink.name: joint for joint in joints if joint.writer == item.node}
        problems += make_for_readers(item.built, list(read.values()), engine.storage)
    if problems:
        return [], problems
    try:
        return [rebuilt(engine, judged, item, trigger) if item.waits else item for item in ready], []
    except UserError as error:
        return [], list(error.problems)


def _declared(
    engine: Engine,
    project: Project,
    pipeline: Pipeline,
    query: Query,
    born: CheckpointFacts | None,
    trigger: Trigger | None,
    instead: build.Instead | None = None,
) -> tuple[build.Built, Profile]:
    """A query as Spark knows it, and how it will run. Raises UserError."""
    quick_files = engine.quick_files and is_local(resolve.storage_root(project, os.environ))
    choices = {name for source in pipeline.sources_of(query.name) for name in source.spec.session_choices}
    choices |= {name for sink in query.sinks for name in sink.spec.session_choices}
    chosen = profile(
        query,
        engine.cores,
        resolve.project_settings(project, os.environ),
        resolve.project_state(project, os.environ),
        quick_files=quick_files,
        session_choices=choices,
        trigger=trigger,
    )
    chosen = chosen.overlaid(born.settings if born else {}, "fixed when the checkpoint was created")
    built = build.build(engine, pipeline, query, chosen.settings, instead=instead)
    if processes_of(pipeline, query) and ENCODING not in chosen.choices and only_processes(built.plan):
        chosen = chosen.overlaid({ENCODING: "avro"}, "state in Avro can follow when a processor changes")
        built.session.conf.set(ENCODING, "avro")
    if born is None and chosen.settings.get(FORMAT) == "2" and build.leaves_state_behind(pipeline, built):
        # Format 2 finds a batch's state by the tasks that wrote it, and a batch that is passed over runs none.
        chosen = chosen.overlaid({FORMAT: "1"}, "the sink passes over a batch that it has")
        built.session.conf.set(FORMAT, "1")
    return built, replace(chosen, async_progress=async_progress(pipeline, query, built.plan, chosen.settings))


def _planned(
    engine: Engine,
    project: Project,
    written: Pipeline,
    built: build.Built,
    pipeline: Pipeline,
    settings: Mapping[str, str],
    born: CheckpointFacts | None,
) -> tuple[QueryPlan, Recorded]:
    """What a start would do to the query's checkpoint, and what it would record there."""
    query = built.query
    if pipeline.is_ephemeral(query):
        promise = pipeline.guarantee_of(query).promise
        return QueryPlan(pipeline.name, query.name, is_new=True, promise=promise), Recorded()
    now = signature_of(engine, pipeline, built, settings, project)
    plan = plan_query(project, written, pipeline, query, born, now, built.plan)
    return plan, recorded_now(project, written, pipeline, query, now)


def _not_judged(query: Query, error: Exception) -> Problem:
    message = f"query `{query.name}` could not be judged: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return Problem(
        "CHECK004",
        message,
        "report this bug, with the file of the pipeline and `.penstock/spark.log`",
        query.origin.where,
    )


def slot_problems(ready: Sequence[Ready], cores: int) -> list[Problem]:
    """Do queries that are started together hold more cores than there are?"""
    return list(held_cores.too_few([held_cores.held(item.pipeline, item.built, item.profile) for item in ready], cores))


def _listeners(names: tuple[str, ...], pipeline: Pipeline) -> Iterator[Any]:
    """The user's own listeners, each named by `module:Class`: one of each for all queries. Raises UserError."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    for name in names:
        try:
            listener = load_code(name)()
            if not isinstance(listener, StreamingQueryListener):
                raise TypeError(f"it is a {type(listener).__name__}, not a StreamingQueryListener")
            yield listener
        except Exception as error:
            raise UserError(
                Problem("SPARK007", f"the listener `{name}` cannot be added: {type(error).__name__}: {error}",
                        "name a class that extends StreamingQueryListener and takes no arguments, as `module:Class`",
                        pipeline.origin.at("listeners"))
            ) from error  # fmt: skip


def _missing_partition_columns(built: build.Built) -> Iterator[Problem]:
    """What Spark would only say once the first batch is written."""
    known = built.rows.columns
    for sink in built.query.sinks:
        for column in getattr(sink.spec, "partition_by", ()) if sink.spec.batch_sql is None else ():
            if column.isidentifier() and column.lower() not in {one.lower() for one in known}:
                near = did_you_mean(column, known)
                message = f"sink `{sink.name}` is partitioned by `{column}`, which is not a column{near}"
                yield Problem("SPARK003", message, f"use one of: {', '.join(known)}", sink.origin.at("partition_by"))


def _without_repeats(problems: list[Problem]) -> list[Problem]:
    """Two queries over one broken step tell the same Problem."""
    return list(dict.fromkeys(problems))
