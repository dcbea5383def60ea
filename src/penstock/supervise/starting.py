"""Starts queries that are ready, each pipeline under its lock."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from penstock.checkpoint import after_continuous, gaps
from penstock.checkpoint.generations import cannot_write, prepare
from penstock.checkpoint.lock import held, lock_folder
from penstock.checks.rule import Disk
from penstock.engine import build, resolve
from penstock.engine.latency import BIRTH_SETTINGS
from penstock.engine.session import Engine
from penstock.facts.stored import CheckpointFacts
from penstock.notation.references import Mask
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.prepare.ready import Ready, slot_problems
from penstock.problems import Problem, UserError
from penstock.query.triggers import Trigger
from penstock.storage.storage import Storage, join
from penstock.supervise import crash_watch
from penstock.supervise.backlog import Backlog, backlog
from penstock.supervise.running import RunningQuery


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


def _stop_all(running: list[RunningQuery]) -> None:
    for query in running:
        with contextlib.suppress(Exception):
            query.stop()
