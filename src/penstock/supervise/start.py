"""Builds every query first, then starts them: what is wrong with one is told before any of them has written."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.checkpoint import after_continuous, gaps
from penstock.checkpoint.lock import held, lock_folder
from penstock.checkpoint.prepare import cannot_write, prepare
from penstock.checks.rule import Disk, Subject
from penstock.checks.runner import judge_plans
from penstock.engine import build, resolve
from penstock.engine.latency import BIRTH_SETTINGS, Profile, async_progress, profile
from penstock.engine.session import Engine
from penstock.facts import CheckpointFacts
from penstock.paths import is_local
from penstock.pipeline.load import use_modules_of
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.problems import Problem, UserError, did_you_mean
from penstock.references import Mask
from penstock.state_store import ENCODING, FORMAT
from penstock.storage import Storage, join
from penstock.streams import only_processes
from penstock.supervise import crash_watch, slots
from penstock.supervise.backlog import Backlog, backlog
from penstock.supervise.running import RunningQuery
from penstock.supervise.state import processes_of, state_problems
from penstock.triggers import Trigger
from penstock.user_code import load


@dataclass(frozen=True)
class Ready:
    """A query that is built and not yet started."""

    pipeline: Pipeline
    written: Pipeline
    """The same as the user wrote it: with references in place of what they resolve to."""
    built: build.Built
    profile: Profile
    listeners: tuple[Any, ...] = ()


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
    of_project = resolve.project_settings(project, os.environ)
    state = resolve.project_state(project, os.environ)
    quick_files = engine.quick_files and is_local(resolve.storage_root(project, os.environ))
    for written, pipeline in pipelines:
        try:
            listeners = tuple(_listeners((*project.listeners, *pipeline.listeners), pipeline))
        except UserError as error:
            problems += error.problems
            continue
        for query in pipeline.queries:
            choices = {name for source in pipeline.sources_of(query.name) for name in source.spec.session_choices}
            choices |= {name for sink in query.sinks for name in sink.spec.session_choices}
            chosen = profile(
                query, engine.cores, of_project, state,
                quick_files=quick_files, session_choices=choices, trigger=trigger,
            )  # fmt: skip
            born = disks[pipeline.name].checkpoints.get(query.name) if pipeline.name in disks else None
            chosen = chosen.overlaid(born.settings if born else {}, "fixed when the checkpoint was born")
            try:
                built = build.build(engine, pipeline, query, chosen.settings)
            except UserError as error:
                problems += error.problems
                continue
            if processes_of(pipeline, query) and ENCODING not in chosen.choices and only_processes(built.plan):
                chosen = chosen.overlaid({ENCODING: "avro"}, "state in Avro can follow when a processor changes")
                built.session.conf.set(ENCODING, "avro")
            if born is None and chosen.settings.get(FORMAT) == "2" and build.leaves_state_behind(pipeline, built):
                # Format 2 finds a batch's state by the tasks that wrote it, and a batch that is passed over runs none.
                chosen = chosen.overlaid({FORMAT: "1"}, "the sink passes over a batch that it has")
                built.session.conf.set(FORMAT, "1")
            chosen = replace(chosen, async_progress=async_progress(pipeline, query, built.plan, chosen.settings))
            subject = Subject(project, pipeline, plans={query.name: built.plan}, cores=engine.cores)
            problems += judge_plans(subject, build.refusal(built))
            problems += _missing_partition_columns(built)
            problems += state_problems(pipeline, built, born, engine.storage(born.path) if born else None)
            ready.append(Ready(pipeline, written, built, chosen, listeners))
    return ready, _without_repeats(problems)


def slot_problems(ready: Sequence[Ready], cores: int) -> list[Problem]:
    """Do queries that are started together hold more cores than there are?"""
    return list(slots.too_few([slots.held(item.pipeline, item.built, item.profile) for item in ready], cores))


def start_all(
    engine: Engine,
    project: Project,
    ready: list[Ready],
    disks: Mapping[str, Disk],
    trigger: Trigger | None,
    cleanup: ExitStack,
) -> list[RunningQuery]:
    """Starts what was built, each pipeline under its lock, which `cleanup` gives back. Raises UserError."""
    mask = resolve.mask(project, os.environ)
    if trigger is None and (problems := slot_problems(ready, engine.cores)):
        raise UserError(problems)
    for name in dict.fromkeys(item.pipeline.name for item in ready):
        cleanup.enter_context(held(engine.spark, lock_folder(project), name))
    if problems := [problem for item in ready for problem in build.prepare(item.built)]:
        raise UserError(problems)
    running: list[RunningQuery] = []
    cleanup.callback(_stop_all, running)
    for item in ready:
        query = item.built.query
        checkpoint = _checkpoint(engine, project, item, disks[item.pipeline.name])
        for listener in item.listeners:
            item.built.session.streams.addListener(listener)
        storage = engine.storage(checkpoint.path)
        waiting = backlog(item.pipeline, query.name, storage, checkpoint.path) if trigger else None
        running.append(_begun(engine, item, checkpoint, trigger, mask, storage, waiting))
    return running


def _begun(
    engine: Engine,
    item: Ready,
    checkpoint: CheckpointFacts,
    trigger: Trigger | None,
    mask: Mask,
    storage: Storage,
    waiting: Backlog | None,
) -> RunningQuery:
    query = item.built.query
    chosen = trigger or item.profile.trigger
    interval = item.profile.interval if chosen.allows_async_progress else None

    def start(built: build.Built) -> build.Started:
        if chosen.kind != "continuous":  # that one goes by commits, which have no gaps to mind
            _let_batches_go_on(storage, checkpoint.path, query, with_gaps=interval is not None)
        started = build.start(engine, item.pipeline, built, checkpoint.path, checkpoint.id, chosen, interval)
        crash_watch.begin(built, started, checkpoint.path)
        return started

    def anew() -> tuple[build.Built, build.Started]:
        """Declared to Spark again: a source may give other columns, or list other files, than before."""
        built = build.build(engine, item.pipeline, query, item.profile.settings)
        if problems := list(build.prepare(built)):
            raise UserError(problems)
        for listener in item.listeners:
            built.session.streams.addListener(listener)
        return built, start(built)

    guarantee = item.pipeline.guarantee_of(query, interval=interval)
    return RunningQuery(
        item.pipeline, item.built, start(item.built), anew, guarantee, checkpoint.path, mask, storage, waiting
    )


def _let_batches_go_on(storage: Storage, checkpoint: str, query: Query, *, with_gaps: bool) -> None:
    """Lets Spark go on where asynchronous progress or Continuous Processing has left off. Raises UserError."""
    try:
        after_continuous.complete(storage, checkpoint)
        if not with_gaps:
            gaps.close(storage, checkpoint)
    except gaps.NoEarlierBatch as gap:
        raise UserError(
            Problem("CHECKPOINT007", f"the checkpoint `{checkpoint}` of `{query.name}` can only be gone on with by"
                    f" asynchronous progress: {gap}",
                    f"set `queries: {{{query.name}: {{async_progress: 0 seconds}}}}`, with the trigger and the sink as"
                    " they were, let `penstock run` write two batches, stop it, and take the line out again; it repeats"
                    " all rows since the first",
                    query.origin.where)
        ) from None  # fmt: skip
    except OSError as error:
        raise UserError(cannot_write(checkpoint, error, query)) from None


def _checkpoint(engine: Engine, project: Project, item: Ready, disk: Disk) -> CheckpointFacts:
    query = item.built.query
    root = resolve.storage_root(project, os.environ)
    if item.pipeline.is_ephemeral(query):
        if not engine.is_local:  # workers on other machines keep state there too
            return _throw_away(join(root, "ephemeral", item.pipeline.name, query.name, str(uuid4())), query)
        folder: Path = project.local_folder / "ephemeral" / item.pipeline.name / query.name
        shutil.rmtree(folder, ignore_errors=True)
        return _throw_away(str(folder), query)
    return prepare(
        engine.storage(root),
        root,
        item.written,
        next(written for written in item.written.queries if written.name == query.name),
        project.root,
        engine.version,
        {key: value for key, value in item.profile.settings.items() if key in BIRTH_SETTINGS},
        partition_columns_of(item.pipeline, query, disk),
    )


def _throw_away(folder: str, query: Query) -> CheckpointFacts:
    """A checkpoint that nothing resumes; Spark gives it an identity of its own."""
    return CheckpointFacts(query.name, 1, folder, str(uuid4()))


def partition_columns_of(pipeline: Pipeline, query: Query, disk: Disk) -> dict[str, tuple[str, ...]]:
    found = {
        source.name: disk.folders.get(getattr(source.spec, "path", None) or "")
        for source in pipeline.sources_of(query.name)
    }
    # An empty folder says nothing yet about the columns that its folders will give.
    seen = {name: folder for name, folder in found.items() if folder and (folder.files or folder.partition_columns)}
    return {name: folder.partition_columns for name, folder in seen.items()}


def _listeners(names: tuple[str, ...], pipeline: Pipeline) -> Iterator[Any]:
    """The user's own listeners, each named by `module:Class`: one of each for all queries. Raises UserError."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    for name in names:
        try:
            listener = load(name)()
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


def _stop_all(running: list[RunningQuery]) -> None:
    for query in running:
        with contextlib.suppress(Exception):
            query.stop()


def _without_repeats(problems: list[Problem]) -> list[Problem]:
    """Two queries over one broken step tell the same Problem."""
    return list(dict.fromkeys(problems))
