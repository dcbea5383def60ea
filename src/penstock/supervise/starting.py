"""Starts queries that are ready, each pipeline under its lock."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from penstock.checkpoint import after_continuous, gaps, orphan_sums
from penstock.checkpoint.generations import cannot_write, discard, prepare
from penstock.checkpoint.lock import held, lock_folder
from penstock.checks.rule import Disk
from penstock.engine import build, resolve
from penstock.engine.latency import BIRTH_SETTINGS
from penstock.engine.session import Engine
from penstock.facts.stored import CheckpointFacts
from penstock.notation.paths import is_local
from penstock.notation.references import Mask
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.prepare.ready import Ready, slot_problems
from penstock.problems import Problem, UserError
from penstock.query.triggers import Trigger
from penstock.sinks.files import Files
from penstock.spark_internals import close_ended_callbacks, relayed
from penstock.storage.storage import Storage, join
from penstock.supervise import crash_watch
from penstock.supervise.backlog import Backlog, backlog
from penstock.supervise.resuming import damages, remember_sinks, seal_all, sinks_that_do_not_fit
from penstock.supervise.running import RunningQuery


def start_all(
    engine: Engine,
    project: Project,
    ready: list[Ready],
    disks: Mapping[str, Disk],
    trigger: Trigger | None,
    cleanup: ExitStack,
    *,
    is_locked: bool = False,
) -> list[RunningQuery]:
    """Starts what was built, each pipeline under its lock, which `cleanup` gives back. Raises UserError."""
    mask = resolve.mask(project, os.environ)
    if trigger is None and (problems := slot_problems(ready, engine.cores)):
        raise UserError(problems)
    if not is_locked:
        lock_all(engine, project, ready, cleanup)
    _judge_and_prepare(engine, ready, disks)
    running: list[RunningQuery] = []
    kept: list[tuple[Storage, str]] = []
    cleanup.callback(seal_all, kept)
    cleanup.callback(_stop_all, running)
    checkpoints: list[CheckpointFacts] = []
    try:
        for item in ready:
            checkpoints.append(_checkpoint(engine, project, item, disks[item.pipeline.name]))
        for item, checkpoint in zip(ready, checkpoints, strict=True):
            if not item.pipeline.is_ephemeral(item.built.query):
                remember_sinks(engine, item, checkpoint)
                kept.append((engine.storage(checkpoint.path), checkpoint.path))
            for listener in item.listeners:
                item.built.session.streams.addListener(relayed(listener))
            storage = engine.storage(checkpoint.path)
            waiting = backlog(item.pipeline, item.built.query.name, storage, checkpoint.path) if trigger else None
            running.append(_begun(engine, item, checkpoint, trigger, mask, storage, waiting))
    except UserError:
        for item, checkpoint in list(zip(ready, checkpoints, strict=False))[len(running) :]:
            if checkpoint.query not in disks[item.pipeline.name].checkpoints:
                with contextlib.suppress(OSError):  # the refusal says more than what hinders the tidying
                    discard(engine.storage(checkpoint.path), checkpoint)
        raise
    return running


def _judge_and_prepare(engine: Engine, ready: list[Ready], disks: Mapping[str, Disk]) -> None:
    """First every judgement on every query, then what changes something: a refused run has changed nothing outside."""
    for judge in (damages, sinks_that_do_not_fit):
        if problems := [problem for item in ready for problem in judge(engine, item, disks[item.pipeline.name])]:
            raise UserError(problems)
    for step in (build.judge_sinks, build.prepare):
        if problems := [problem for item in ready for problem in step(item.built)]:
            raise UserError(problems)


def lock_all(engine: Engine, project: Project, ready: list[Ready], cleanup: ExitStack) -> None:
    """Takes the lock of each pipeline, which `cleanup` gives back. Raises UserError."""
    for name in dict.fromkeys(item.pipeline.name for item in ready):
        cleanup.enter_context(held(engine.spark, lock_folder(project), name))


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
        _remove_orphan_sums(storage, checkpoint.path, query)
        if chosen.kind != "continuous":  # that one goes by commits, which have no gaps to mind
            _let_batches_go_on(storage, checkpoint.path, query, with_gaps=interval is not None)
        started = build.start(engine, item.pipeline, built, checkpoint.path, checkpoint.id, chosen, interval)
        crash_watch.begin(built, started, checkpoint.path)
        return started

    def begin_again(before: build.Built) -> tuple[build.Built, build.Started]:
        """Declared to Spark again: a source may give other columns, or list other files, than before."""
        close_ended_callbacks()
        built = build.build(engine, item.pipeline, query, item.profile.settings, again=before.session)
        for step in (build.judge_sinks, build.prepare):
            if problems := list(step(built)):
                raise UserError(problems)
        return built, start(built)

    guarantee = item.pipeline.guarantee_of(query, interval=interval)
    return RunningQuery(
        item.pipeline,
        item.built,
        start(item.built),
        begin_again,
        guarantee,
        checkpoint.path,
        mask,
        storage,
        item.policy,
        waiting,
    )


def _remove_orphan_sums(storage: Storage, checkpoint: str, query: Query) -> None:
    """Lets Spark write the entries whose sums somebody has left behind. Raises UserError."""
    if not is_local(checkpoint):
        return  # only Hadoop's own file system for local disks keeps sums
    outs = [sink.spec.path for sink in query.sinks if isinstance(sink.spec, Files) and is_local(sink.spec.path)]
    try:
        orphan_sums.remove(storage, checkpoint, outs)
    except OSError as error:
        raise UserError(cannot_write(checkpoint, error, query)) from None


def _let_batches_go_on(storage: Storage, checkpoint: str, query: Query, *, with_gaps: bool) -> None:
    """Lets Spark go on where asynchronous progress or Continuous Processing has left off. Raises UserError."""
    try:
        after_continuous.complete(storage, checkpoint)
        if not with_gaps:
            gaps.close(storage, checkpoint)
    except gaps.NoEarlierBatch as gap:
        raise UserError(
            Problem("CHECKPOINT007", f"the checkpoint `{checkpoint}` of `{query.name}` can only be resumed with"
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
        item.recorded,
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


def _stop_all(running: list[RunningQuery]) -> None:
    for query in running:
        with contextlib.suppress(Exception):
            query.stop()
            query.release()
    close_ended_callbacks()
