"""Builds every query first, then starts them: what is wrong with one is told before any of them has written."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.lock import held
from penstock.checkpoint.prepare import prepare
from penstock.checks.rule import Disk
from penstock.engine import build, resolve
from penstock.engine.latency import BIRTH_SETTINGS, Profile, profile
from penstock.engine.session import Engine
from penstock.pipeline.load import use_modules_of
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.problems import Problem, UserError
from penstock.supervise.backlog import backlog
from penstock.supervise.running import RunningQuery
from penstock.transforms.python import load
from penstock.triggers import Trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Ready:
    """A query that is built and not yet started."""

    pipeline: Pipeline
    written: Pipeline
    """The same as the user wrote it: with references in place of what they resolve to."""
    built: build.Built
    profile: Profile


def build_all(
    engine: Engine, project: Project, pipelines: Sequence[tuple[Pipeline, Pipeline]], disks: Mapping[str, Disk]
) -> tuple[list[Ready], list[Problem]]:
    """Every query of pipelines, each written and resolved, declared to Spark; and what Spark says against them."""
    ready: list[Ready] = []
    problems: list[Problem] = []
    use_modules_of(project.root)
    engine.use_modules_of(project.root)
    for written, pipeline in pipelines:
        for query in pipeline.queries:
            chosen = profile(query, engine.cores)
            born = disks[pipeline.name].checkpoints.get(query.name) if pipeline.name in disks else None
            settings = chosen.settings | dict(born.settings if born else {})
            try:
                built = build.build(engine, pipeline, query, settings)
            except UserError as error:
                problems += error.problems
                continue
            refused = build.refusal(engine, built)
            problems += [refused] if refused else []
            ready.append(Ready(pipeline, written, built, Profile(chosen.trigger, settings)))
    return ready, _without_repeats(problems)


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
    for name in dict.fromkeys(item.pipeline.name for item in ready):
        cleanup.enter_context(held(engine.spark._jvm, project.local_folder / "locks", name))
    running: list[RunningQuery] = []
    cleanup.callback(_stop_all, running)
    for item in ready:
        query = item.built.query
        checkpoint = _checkpoint(engine, project, item, disks[item.pipeline.name])
        _listen(item.built.session, (*project.listeners, *item.pipeline.listeners), item.pipeline)
        storage = engine.storage(checkpoint)
        waiting = backlog(item.pipeline, query.name, storage, checkpoint) if trigger else None
        started = build.start(item.built, checkpoint, trigger or item.profile.trigger)
        guarantee = item.pipeline.guarantee_of(query)
        running.append(
            RunningQuery(item.built, started, item.pipeline.name, checkpoint, guarantee, mask, storage, waiting)
        )
    return running


def _checkpoint(engine: Engine, project: Project, item: Ready, disk: Disk) -> str:
    query = item.built.query
    if is_ephemeral(item.pipeline, query):
        folder: Path = project.local_folder / "ephemeral" / item.pipeline.name / query.name
        shutil.rmtree(folder, ignore_errors=True)
        return str(folder)
    root = resolve.storage_root(project, os.environ)
    facts = prepare(
        engine.storage(root),
        root,
        item.written,
        next(written for written in item.written.queries if written.name == query.name),
        project.root,
        engine.version,
        {key: value for key, value in item.profile.settings.items() if key in BIRTH_SETTINGS},
        partition_columns_of(item.pipeline, query, disk),
    )
    return facts.path


def is_ephemeral(pipeline: Pipeline, query: Query) -> bool:
    """Has it nothing to resume? Its sink is gone with the process, or a source cannot be read again."""
    return query.sink.spec.ephemeral or any(not source.spec.replayable for source in pipeline.sources_of(query.name))


def partition_columns_of(pipeline: Pipeline, query: Query, disk: Disk) -> dict[str, tuple[str, ...]]:
    found = {
        source.name: disk.folders.get(getattr(source.spec, "path", None) or "")
        for source in pipeline.sources_of(query.name)
    }
    return {name: folder.partition_columns for name, folder in found.items() if folder is not None}


def _listen(session: SparkSession, names: tuple[str, ...], pipeline: Pipeline) -> None:
    """Adds the user's own listeners, each named by `module:Class`."""
    for name in names:
        try:
            listener: Any = load(name)()
            session.streams.addListener(listener)
        except Exception as error:
            raise UserError(
                Problem("SPARK007", f"the listener `{name}` cannot be added: {type(error).__name__}: {error}",
                        "name a StreamingQueryListener as `module:Class`", pipeline.origin.at("listeners"))
            ) from error  # fmt: skip


def _stop_all(running: list[RunningQuery]) -> None:
    for query in running:
        with contextlib.suppress(Exception):
            query.stop()


def _without_repeats(problems: list[Problem]) -> list[Problem]:
    """Two queries over one broken step tell the same Problem."""
    return list(dict.fromkeys(problems))
