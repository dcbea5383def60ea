"""Declares every query to Spark, before one is started: what is wrong with one is told before any has written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.checks.every_rule import judge, judge_plans
from penstock.checks.rule import Disk, Subject
from penstock.engine import build, resolve
from penstock.engine.latency import Profile, async_progress, profile
from penstock.engine.session import Engine
from penstock.facts.stored import CheckpointFacts
from penstock.facts.streams import only_processes
from penstock.notation.paths import is_local
from penstock.pipeline.load import use_modules_of
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.prepare import cores as held_cores
from penstock.prepare.judging import Judged
from penstock.prepare.look import look
from penstock.prepare.processor_state import processes_of, state_problems
from penstock.problems import Problem, UserError, did_you_mean, errors_in
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
    listeners: tuple[Any, ...] = ()


def build_with(engine: Engine, judged: Judged, trigger: Trigger | None = None) -> tuple[list[Ready], list[Problem]]:
    """Declares everything to Spark, with a last look at a storage that only Spark can reach."""
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
    ready, problems = build_all(engine, judged.project, judged.pairs, judged.disks, trigger)
    return ready, [*remote, *resolve.masked(problems, judged.project, os.environ)]


def _paths_of(judged: Judged) -> Iterator[str]:
    for pipeline in judged.resolved:
        for node in (*pipeline.sources, *pipeline.sinks):
            yield getattr(node.spec, "path", None) or ""


def _out_of_reach(root: str, error: OSError, project: Project) -> Problem:
    fix = "mend its address, or the settings under `spark:` that lead to it"
    return Problem(
        "CHECKPOINT002", f"the storage `{root}` cannot be reached: {error}", fix, project.origin.at("storage")
    )


def build_all(
    engine: Engine,
    project: Project,
    pipelines: Sequence[tuple[Pipeline, Pipeline]],
    disks: Mapping[str, Disk],
    trigger: Trigger | None = None,
) -> tuple[list[Ready], list[Problem]]:
    """Every query of pipelines, each written and resolved, declared to Spark; and what Spark says against them.

    `trigger` is the one that the run asks for, in place of each query's own.
    """
    ready: list[Ready] = []
    problems: list[Problem] = []
    use_modules_of(project.root)
    engine.use_modules_of(project.root)
    for written, pipeline in pipelines:
        try:
            listeners = tuple(_listeners((*project.listeners, *pipeline.listeners), pipeline))
        except UserError as error:
            problems += error.problems
            continue
        for query in pipeline.queries:
            born = disks[pipeline.name].checkpoints.get(query.name) if pipeline.name in disks else None
            try:
                built, chosen = _declared(engine, project, pipeline, query, born, trigger)
                subject = Subject(project, pipeline, plans={query.name: built.plan}, cores=engine.cores)
                problems += judge_plans(subject, build.refusal(built))
                problems += _missing_partition_columns(built)
                problems += state_problems(pipeline, built, born, engine.storage(born.path) if born else None)
            except UserError as error:
                problems += error.problems
                continue
            except Exception as error:  # noqa: BLE001 - a bug in one query must not hide what is wrong with the others
                problems.append(_not_judged(query, error))
                continue
            ready.append(Ready(pipeline, written, built, chosen, listeners))
    return ready, _without_repeats(problems)


def _declared(
    engine: Engine,
    project: Project,
    pipeline: Pipeline,
    query: Query,
    born: CheckpointFacts | None,
    trigger: Trigger | None,
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
    chosen = chosen.overlaid(born.settings if born else {}, "fixed when the checkpoint was born")
    built = build.build(engine, pipeline, query, chosen.settings)
    if processes_of(pipeline, query) and ENCODING not in chosen.choices and only_processes(built.plan):
        chosen = chosen.overlaid({ENCODING: "avro"}, "state in Avro can follow when a processor changes")
        built.session.conf.set(ENCODING, "avro")
    if born is None and chosen.settings.get(FORMAT) == "2" and build.leaves_state_behind(pipeline, built):
        # Format 2 finds a batch's state by the tasks that wrote it, and a batch that is passed over runs none.
        chosen = chosen.overlaid({FORMAT: "1"}, "the sink passes over a batch that it has")
        built.session.conf.set(FORMAT, "1")
    return built, replace(chosen, async_progress=async_progress(pipeline, query, built.plan, chosen.settings))


def _not_judged(query: Query, error: Exception) -> Problem:
    message = f"query `{query.name}` could not be judged: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return Problem("CHECK004", message, "report this bug with the text of the pipeline", query.origin.where)


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
                        "name a StreamingQueryListener as `module:Class`", pipeline.origin.at("listeners"))
            ) from error  # fmt: skip


def _missing_partition_columns(built: build.Built) -> Iterator[Problem]:
    """What Spark would only say once the first batch is written."""
    known = built.rows.columns
    for sink in built.query.sinks:
        for column in getattr(sink.spec, "partition_by", ()) if sink.spec.batch_sql is None else ():
            if column.isidentifier() and column.lower() not in {one.lower() for one in known}:
                message = (
                    f"sink `{sink.name}` is partitioned by `{column}`, which is no column{did_you_mean(column, known)}"
                )
                yield Problem("SPARK003", message, f"use one of: {', '.join(known)}", sink.origin.at("partition_by"))


def _without_repeats(problems: list[Problem]) -> list[Problem]:
    """Two queries over one broken step tell the same Problem."""
    return list(dict.fromkeys(problems))
