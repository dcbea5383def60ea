"""Gives a query a new checkpoint: planned as a value, shown, then applied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.actions.checkpoint import OpenedCheckpoints, opened, require_generations
from penstock.checkpoint import folders, reset
from penstock.checkpoint.damage import reset_command
from penstock.checkpoint.lock import held_without_spark, lock_folder
from penstock.checkpoint.read import checkpoint
from penstock.pipeline.model import Pipeline, Query, Sink
from penstock.plan.sink_facts import sink_place
from penstock.prepare.needs import StartEngine
from penstock.problems import Fault, Problem, UserError
from penstock.sinks.files import Files
from penstock.sinks.held import CANNOT_EMPTY, claim_folder, held_by_folder
from penstock.storage.storage import Storage

Word = Literal["earliest", "latest", "offsets"]
Output = Literal["keep", "empty"]
_AGAIN = "gets all rows again"


@dataclass(frozen=True)
class ResetPlace:
    """Where the new checkpoint begins: a word, or a moment."""

    text: str
    moment_ms: int | None = None

    @property
    def reads_again(self) -> bool:
        """May rows that were read before be read again?"""
        return self.text not in ("offsets", "latest")


@dataclass(frozen=True)
class SinkEffect:
    """What a sink will see after the reset."""

    sink: str
    type: str
    place: str
    effect: str
    repeats: bool
    """Would rows be there twice if it is not emptied?"""
    empties: bool
    shared_with: tuple[str, ...] = ()
    """Other queries that write to the same place: emptying it takes their rows too."""


@dataclass(frozen=True)
class ResetPlan:
    """What a reset does. Nothing is changed yet."""

    pipeline: str
    query: str
    place: ResetPlace
    output: Output | None
    generation: int
    """The number of the new one."""
    old: str
    """The folder of the old one, which is kept."""
    sinks: tuple[SinkEffect, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.pipeline}.{self.query}"

    def to_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "query": self.query,
            "from": self.place.text,
            "output": self.output,
            "generation": self.generation,
            "old": self.old,
            "sinks": [vars(one) for one in self.sinks],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class ResetResult:
    """A reset that was made."""

    plan: ResetPlan
    id: str
    emptied: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"ok": True, "id": self.id, "emptied": list(self.emptied), **self.plan.to_json()}


Confirm = Callable[[ResetPlan], bool]
"""Shows a plan to the user and asks."""


@dataclass(frozen=True)
class _Target:
    """The query whose checkpoint is reset."""

    project: OpenedCheckpoints
    pipeline: Pipeline
    query: Query
    folder: str
    old: str
    storage: Storage = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.pipeline.name}.{self.query.name}"


def reset_checkpoint(
    start: Path,
    name: str,
    environment: str | None,
    place: ResetPlace,
    output: Output | None,
    confirm: Confirm,
    start_engine: StartEngine,
) -> ResetResult:
    """Makes a new generation with a new identity. The old one is kept. Raises UserError before anything is changed."""
    with opened(start, (), environment, start_engine) as project:
        pipeline, query = project.named(name)
        with held_without_spark(lock_folder(project.project), pipeline.name):
            target = _target(project, pipeline, query)
            seed, notes = _seed(target, place, output)
            plan = _plan(target, place, output, notes)
            _require_choice(target, plan)
            if not confirm(plan):
                again = reset_command(target.name, place.text)
                raise UserError(
                    Problem("CHECKPOINT025", f"the reset of `{target.name}` was not confirmed: nothing was changed",
                            f"type the name of the query when asked, or run `{again} --yes`")
                )  # fmt: skip
            return _applied(target, plan, seed)


def _target(project: OpenedCheckpoints, pipeline: Pipeline, query: Query) -> _Target:
    require_generations(project, pipeline, query)
    folder, storage = project.folder(pipeline, query), project.storage(project.root)
    known = checkpoint(storage, folder, query.name)
    assert known is not None  # noqa: S101 - it has generations
    return _Target(project, pipeline, query, folder, known.path, storage)


def _seed(target: _Target, place: ResetPlace, output: Output | None) -> tuple[reset.Seed | None, list[str]]:
    """What the new checkpoint begins with, and what to know about it. Raises UserError."""
    storage, old = target.storage, target.old
    stateful, notes = reset.is_stateful(storage, old), []
    logged = max((batch for batch in _logged(target, output)), default=None)
    known = checkpoint(storage, target.folder, target.query.name)
    if place.text == "earliest":
        if stateful:
            notes.append("its state begins empty, and is built again from the rows")
        if logged is None:
            return None, notes
        if stateful:
            raise UserError(_cannot(target, "its sink of files skips batches that are in the log of its folder, and a"
                                    " query with state cannot count from there",
                                    f"{reset_command(target.name)} --empty-output"))  # fmt: skip
        return reset.seed_from_start(storage, old, logged), notes
    if stateful:
        raise UserError(_cannot(target, "the query keeps state, which would be missing: its results would be wrong",
                                reset_command(target.name)))  # fmt: skip
    if known is not None and known.batch_under_way is not None:
        notes.append(f"batch {known.batch_under_way} was under way: its rows are read again")
    if place.text == "offsets":
        found = reset.seed_of_old(storage, old)
        if found is not None and logged is not None and logged > found.batch:
            found = reset.seed_of_old(storage, old, logged)
        return found, notes
    return _seed_of_sources(target, place, logged or 0), notes


def _seed_of_sources(target: _Target, place: ResetPlace, batch: int) -> reset.Seed:
    streams = [one for one in target.pipeline.sources_of(target.query.name) if not one.spec.is_static]
    earliest = reset_command(target.name)
    if len(streams) != 1:
        raise UserError(_cannot(target, f"it reads {len(streams)} streams, and only one can be set", earliest))
    try:
        beginning = streams[0].spec.beginning(place.moment_ms)
    except Fault as fault:
        raise UserError(fault.at(streams[0].origin.at(*fault.keys))) from None
    if beginning is None:
        what = f"source `{streams[0].name}` of type `{streams[0].spec.type}` cannot be set to a place"
        raise UserError(_cannot(target, what, earliest))
    logs = {f"0/{name}": text for name, text in beginning.log.items()}
    return reset.seed_at(target.storage, target.old, [beginning.offset], logs, batch)


def _cannot(target: _Target, why: str, command: str) -> Problem:
    return Problem("CHECKPOINT024", f"`{target.name}` cannot begin there: {why}", f"run `{command}`",
                   target.query.origin.where)  # fmt: skip


def _logged(target: _Target, output: Output | None) -> Iterator[int]:
    """The newest batches in the logs of folders that are kept: Spark skips what is not above them."""
    if output == "empty":
        return
    for sink in target.query.sinks:
        if isinstance(sink.spec, Files):
            batch = held_by_folder(target.project.storage(sink.spec.path), sink.spec.path).last_batch
            if batch is not None:
                yield batch


def _plan(target: _Target, place: ResetPlace, output: Output | None, notes: list[str]) -> ResetPlan:
    effects = tuple(_effect(target, sink, place, output) for sink in target.query.sinks)
    shown: Output | None = output or (None if place.reads_again and any(one.repeats for one in effects) else "keep")
    number = folders.last_number(target.storage, target.folder) + 1
    return ResetPlan(target.pipeline.name, target.query.name, place, shown, number, target.old, effects, tuple(notes))


def _effect(target: _Target, sink: Sink, place: ResetPlace, output: Output | None) -> SinkEffect:
    writes = getattr(sink.spec, "writes", "append")
    if output == "empty":
        effect, repeats = "is emptied first", False
    elif not place.reads_again:
        effect, repeats = "keeps its rows, and gets the rows that come next", False
    elif writes == "upsert":
        effect, repeats = "gets all keys again: rows of the same key are replaced", False
    elif writes == "overwrite":
        effect, repeats = "is overwritten by the next batch", False
    else:
        effect, repeats = f"{_AGAIN}, beside those that are there", True
    others = tuple(
        f"{pipeline.name}.{query.name}"
        for pipeline, query in target.project.queries()
        if (pipeline.name, query.name) != (target.pipeline.name, target.query.name)
        and any(sink_place(one) == sink_place(sink) and one.spec.type == sink.spec.type for one in query.sinks)
    )
    return SinkEffect(sink.name, sink.spec.type, sink_place(sink), effect, repeats, sink.spec.empties, others)


def _require_choice(target: _Target, plan: ResetPlan) -> None:
    """Raises UserError where the user has to say what becomes of the output, or has said what cannot be done."""
    command = reset_command(target.name, plan.place.text)
    if plan.output is None:
        twice = ", ".join(f"`{one.sink}`" for one in plan.sinks if one.repeats)
        raise UserError(
            Problem("CHECKPOINT025", f"sink {twice} would get rows that it has again: say what becomes of its rows",
                    f"`{command} --empty-output` removes them first, `{command} --keep-output` adds to them",
                    target.query.origin.where)
        )  # fmt: skip
    for sink in target.query.sinks if plan.output == "empty" else ():
        if not sink.spec.empties:
            raise UserError(
                Problem(CANNOT_EMPTY, f"sink `{sink.name}` of type `{sink.spec.type}` cannot be emptied by Penstock",
                        f"remove its rows by hand, then run `{command} --keep-output`", sink.origin.where)
            )  # fmt: skip


def _applied(target: _Target, plan: ResetPlan, seed: reset.Seed | None) -> ResetResult:
    """A kill before the manifest is written leaves all as it was; one after it is seen by the next start."""
    pipeline, query, storage = target.pipeline, target.query, target.storage
    folders_ = [sink.spec for sink in query.sinks if isinstance(sink.spec, Files)]
    unfinished = plan.output == "empty" or bool(folders_)
    try:
        number, identity = reset.new_generation(
            storage, target.folder, pipeline.name, query.name, seed, unfinished=unfinished
        )
        emptied = []
        for sink in query.sinks if plan.output == "empty" else ():
            sink.spec.empty(target.project.storage)
            emptied.append(sink.name)
        for spec in folders_:
            claim_folder(target.project.storage(spec.path), spec.path, identity)
        if unfinished:
            reset.finish(storage, target.folder, number)
    except Fault as fault:
        raise UserError(fault.at(query.origin.where)) from None
    except OSError as error:
        raise UserError(
            Problem("CHECKPOINT002", f"the reset of `{target.name}` could not be finished: {error.strerror or error}",
                    "give this user the right to write there, or free some space; then run it again")
        ) from None  # fmt: skip
    return ResetResult(plan, identity, tuple(emptied))


def is_interactive() -> bool:
    return os.isatty(0)
