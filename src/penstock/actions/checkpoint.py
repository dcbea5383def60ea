"""Lists, shows and verifies the checkpoints of a project."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.checkpoint import folders, offset_ranges, verify
from penstock.checkpoint.damage import Damage
from penstock.checkpoint.read import checkpoint, read_manifest
from penstock.checkpoint.watermarks import watermark_ms
from penstock.engine import resolve
from penstock.notation.paths import is_local
from penstock.pipeline.load import load
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.project import Project
from penstock.plan.sink_facts import progress_of, sink_facts
from penstock.plan.sinks import holding_findings
from penstock.prepare.judging import Judged
from penstock.prepare.needs import StartEngine, needs_of
from penstock.problems import Fault, Problem, UserError, did_you_mean, errors_in
from penstock.storage.batch_log import batches
from penstock.storage.storage import LocalStorage, Storage, join

if TYPE_CHECKING:
    from penstock.engine.session import Engine


@dataclass(frozen=True)
class Generation:
    """One generation of a query's checkpoint."""

    pipeline: str
    query: str
    number: int
    id: str
    path: str
    batches: int
    """Batches that are committed, those that Spark has purged included."""
    last_commit: datetime | None
    bytes: int | None
    """None where it is not on this machine."""
    is_started: bool = True

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"last_commit": self.last_commit and self.last_commit.isoformat()}


@dataclass(frozen=True)
class ListedCheckpoints:
    """The newest generation of each query, in the order of the pipelines."""

    checkpoints: tuple[Generation, ...]

    def to_json(self) -> dict[str, Any]:
        return {"ok": True, "checkpoints": [one.to_json() for one in self.checkpoints]}


@dataclass(frozen=True)
class StoredOperator:
    """One stateful operator of a query."""

    number: int
    name: str
    partitions: int
    bytes: int | None


@dataclass(frozen=True)
class ShownCheckpoint:
    """One query's checkpoint in full."""

    generation: Generation
    sources: dict[str, str]
    """By source, where it resumes."""
    settings: dict[str, str]
    watermark: datetime | None
    operators: tuple[StoredOperator, ...]
    under_way: int | None
    """A batch that is planned and not committed."""
    generations: tuple[Generation, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": True,
            **self.generation.to_json(),
            "sources": self.sources,
            "settings": self.settings,
            "watermark": self.watermark and self.watermark.isoformat(),
            "state": [vars(one) for one in self.operators],
            "under_way": self.under_way,
            "generations": [one.to_json() for one in self.generations],
        }


@dataclass(frozen=True)
class VerifiedCheckpoint:
    """One query, and what is wrong with its checkpoint or does not fit it."""

    pipeline: str
    query: str
    path: str
    damages: tuple[Damage, ...]
    misfits: tuple[Problem, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        return (*(damage.problem() for damage in self.damages), *self.misfits)


@dataclass(frozen=True)
class VerifiedCheckpoints:
    checkpoints: tuple[VerifiedCheckpoint, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(problem for one in self.checkpoints for problem in one.problems)

    @property
    def ok(self) -> bool:
        return not errors_in(self.problems)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "checkpoints": [
                {"pipeline": one.pipeline, "query": one.query, "path": one.path,
                 "problems": [problem.to_json() for problem in one.problems]}
                for one in self.checkpoints
            ],
        }  # fmt: skip


@dataclass(frozen=True)
class OpenedCheckpoints:
    """A project whose checkpoints are looked at."""

    project: Project
    pipelines: tuple[Pipeline, ...]
    """Resolved."""
    engine: Callable[[], Engine] = field(repr=False)
    """Starts Spark, or gives the one that it has started."""

    @property
    def root(self) -> str:
        return resolve.storage_root(self.project, os.environ)

    def storage(self, path: str) -> Storage:
        return LocalStorage() if is_local(path) else self.engine().storage(path)

    def local(self, path: str) -> Storage | None:
        return LocalStorage() if is_local(path) else None

    def folder(self, pipeline: Pipeline, query: Query) -> str:
        """Where the query's generations are; under its former name as long as no run has taken them over."""
        own = folders.folder_of_query(self.root, pipeline.name, query.name)
        if query.settings.was and not folders.generations_in(self.storage(self.root), own):
            former = folders.folder_of_query(self.root, pipeline.name, query.settings.was)
            return former if folders.generations_in(self.storage(self.root), former) else own
        return own

    def queries(self) -> Iterator[tuple[Pipeline, Query]]:
        yield from ((pipeline, query) for pipeline in self.pipelines for query in pipeline.queries)

    def named(self, name: str) -> tuple[Pipeline, Query]:
        """`pipeline.query`, or `query` where only one pipeline has it. Raises UserError."""
        found = [
            (pipeline, query)
            for pipeline, query in self.queries()
            if name in (query.name, f"{pipeline.name}.{query.name}")
        ]
        if len(found) == 1:
            return found[0]
        every = [f"{pipeline.name}.{query.name}" for pipeline, query in self.queries()]
        if found:
            several = " or ".join(f"`{pipeline.name}.{query.name}`" for pipeline, query in found)
            raise UserError(Problem("CHECKPOINT023", f"`{name}` is a query of several pipelines", f"write {several}"))
        near = did_you_mean(name, every) or did_you_mean(name, [one.rpartition(".")[2] for one in every])
        raise UserError(
            Problem("CHECKPOINT023", f"there is no query `{name}`{near}", f"name one of: {', '.join(every)}")
        )


@contextmanager
def opened(
    start: Path, selection: tuple[str, ...], environment: str | None, start_engine: StartEngine
) -> Iterator[OpenedCheckpoints]:
    """Raises UserError. Spark is started only for a storage that is not on this machine, and ended here."""
    loaded = load(start, selection, environment)
    if errors_in(loaded.problems):
        raise UserError(loaded.problems)
    with resolve.masking(loaded.project, os.environ), ExitStack() as cleanup:
        pipelines = tuple(resolve.pipeline(one, loaded.project, os.environ) for one in loaded.pipelines)

        @cache
        def engine() -> Engine:
            judged = Judged(loaded.project, loaded.pipelines, pipelines)
            started = start_engine(loaded.project, *needs_of(judged))
            cleanup.callback(started.close)
            return started

        yield OpenedCheckpoints(loaded.project, pipelines, engine)


def list_checkpoints(
    start: Path, selection: tuple[str, ...], environment: str | None, start_engine: StartEngine
) -> ListedCheckpoints:
    """Raises UserError, OSError."""
    with opened(start, selection, environment, start_engine) as project:
        found = []
        for pipeline, query in project.queries():
            folder = project.folder(pipeline, query)
            numbers = folders.generations_in(project.storage(project.root), folder)
            if numbers:
                found.append(generation(project, pipeline, query, numbers[-1]))
        return ListedCheckpoints(tuple(found))


def show_checkpoint(start: Path, name: str, environment: str | None, start_engine: StartEngine) -> ShownCheckpoint:
    """Raises UserError, OSError."""
    with opened(start, (), environment, start_engine) as project:
        pipeline, query = project.named(name)
        folder, storage = project.folder(pipeline, query), project.storage(project.root)
        numbers = require_generations(project, pipeline, query)
        known = checkpoint(storage, folder, query.name)
        every = tuple(generation(project, pipeline, query, number) for number in numbers)
        newest = every[-1]
        milliseconds = watermark_ms(storage, newest.path)
        return ShownCheckpoint(
            newest,
            dict(_sources(storage, pipeline, query, newest.path, known.last_commit if known else None)),
            dict(known.settings) if known else {},
            datetime.fromtimestamp(milliseconds / 1_000, UTC) if milliseconds else None,
            tuple(_operators(storage, newest.path)),
            known.batch_under_way if known else None,
            every,
        )


def verify_checkpoints(
    start: Path, name: str | None, environment: str | None, start_engine: StartEngine
) -> VerifiedCheckpoints:
    """Reads every file that the next start needs. Raises UserError, OSError."""
    with opened(start, (), environment, start_engine) as project:
        chosen = [project.named(name)] if name else list(project.queries())
        found = []
        for pipeline, query in chosen:
            if name:
                require_generations(project, pipeline, query)
            one = _verified(project, pipeline, query)
            found += [one] if one else []
        return VerifiedCheckpoints(tuple(found))


def _verified(project: OpenedCheckpoints, pipeline: Pipeline, query: Query) -> VerifiedCheckpoint | None:
    storage, folder = project.storage(project.root), project.folder(pipeline, query)
    known = checkpoint(storage, folder, query.name)
    if known is None:
        return None
    full = f"{pipeline.name}.{query.name}"
    damages = verify.deep(storage, known.path, name=full, identity=known.id)
    try:
        facts = sink_facts(pipeline, query, known, storage, project.local)
        misfits = [
            finding.problem for finding in holding_findings(progress_of(pipeline.name, query.name, known), facts)
        ]
    except Fault as fault:
        misfits = [fault.at(query.origin.where)]
    return VerifiedCheckpoint(pipeline.name, query.name, known.path, tuple(damages), tuple(misfits))


def require_generations(project: OpenedCheckpoints, pipeline: Pipeline, query: Query) -> tuple[int, ...]:
    """Raises UserError if the query was never started."""
    numbers = folders.generations_in(project.storage(project.root), project.folder(pipeline, query))
    if not numbers:
        name = f"{pipeline.name}.{query.name}"
        raise UserError(
            Problem("CHECKPOINT023", f"`{name}` has no checkpoint: it was never started",
                    f"start it: `penstock run {pipeline.name}`", query.origin.where)
        )  # fmt: skip
    return numbers


def generation(project: OpenedCheckpoints, pipeline: Pipeline, query: Query, number: int) -> Generation:
    storage, folder = project.storage(project.root), project.folder(pipeline, query)
    born, path = read_manifest(storage, folder, number), folders.generation_folder(folder, number)
    commits = {entry.name: entry for entry in storage.entries(join(path, "commits")) if entry.name.isdigit()}
    newest = max(map(int, commits), default=None)
    moment = None
    if newest is not None:
        moment = datetime.fromtimestamp(commits[str(newest)].modified_ms / 1_000, UTC)
    return Generation(
        pipeline.name,
        query.name,
        number,
        born.id,
        path,
        0 if newest is None else newest + 1,
        moment,
        _bytes(path),
        born.is_started,
    )


def _bytes(path: str) -> int | None:
    if not is_local(path):
        return None
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


def _sources(
    storage: Storage, pipeline: Pipeline, query: Query, path: str, batch: int | None
) -> Iterator[tuple[str, str]]:
    if batch is None or batch not in batches(storage, join(path, "offsets")):
        return
    names = [source.name for source in pipeline.sources_of(query.name) if not source.spec.is_static]
    lines = storage.read_text(join(path, "offsets", str(batch))).split("\n")[2:]
    for number, line in enumerate(lines):
        name = names[number] if len(names) == len(lines) == 1 else f"source {number + 1}"
        yield name, offset_ranges.position_in_words(line)


def _operators(storage: Storage, path: str) -> Iterator[StoredOperator]:
    for entry in sorted(
        (e for e in storage.entries(join(path, "state")) if e.name.isdigit()), key=lambda e: int(e.name)
    ):
        home = join(entry.path, "_metadata")
        versions = [one for one in storage.entries(join(home, "v2")) if one.name.isdigit()]
        file = max(versions, key=lambda one: int(one.name)).path if versions else join(home, "metadata")
        name, partitions = "not known", 0
        if storage.is_file(file):
            try:
                said = json.loads(storage.read_text(file).partition("\n")[2])
                name = said["operatorInfo"]["operatorName"]
                partitions = said["stateStoreInfo"][0]["numPartitions"]
            except (ValueError, LookupError, TypeError):
                name = "not readable"
        yield StoredOperator(int(entry.name), name, partitions, _bytes(entry.path))
