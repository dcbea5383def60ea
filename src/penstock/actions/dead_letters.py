"""Looks at dead letters: how many there are and why, and each of them in full."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.actions.check import Judged, StartEngine, needs_of
from penstock.dead_letters.file_lines import lines_of
from penstock.dead_letters.letters import (
    ID_LENGTH,
    Brief,
    Choice,
    Letter,
    Place,
    Reach,
    once_each,
    to_briefs,
    to_letters,
)
from penstock.dead_letters.replay_notes import Notes, replayed
from penstock.engine import resolve
from penstock.paths import is_local
from penstock.pipeline.load import load
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project
from penstock.problems import Fault, Problem, UserError, did_you_mean, errors_in
from penstock.storage import LocalStorage, Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.engine.session import Engine

_SHORTEST_ID = 4


@dataclass(frozen=True)
class Group:
    """The letters of one node that failed one check."""

    pipeline: str
    node: str
    check: str
    letters: int
    replayed: int
    first: datetime | None
    last: datetime | None
    reason: str | None
    """Why one of them was put aside."""

    def to_json(self) -> dict[str, Any]:
        moments = {"first": self.first and self.first.isoformat(), "last": self.last and self.last.isoformat()}
        return vars(self) | moments


@dataclass(frozen=True)
class ListResult:
    """The greatest groups first."""

    groups: tuple[Group, ...]

    @property
    def letters(self) -> int:
        return sum(group.letters for group in self.groups)

    def to_json(self) -> dict[str, Any]:
        return {"ok": True, "letters": self.letters, "groups": [group.to_json() for group in self.groups]}


@dataclass(frozen=True)
class Shown:
    """A letter, with what is known of it beyond."""

    letter: Letter
    lines: tuple[int, ...] = ()
    """The lines of its file that hold the record, as far as the file is there."""
    replayed_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        return self.letter.to_json() | {"lines": list(self.lines), "replayed_at": self.replayed_at}


@dataclass(frozen=True)
class ShowResult:
    """The newest letters first."""

    letters: tuple[Shown, ...]
    total: int
    """How many were meant, before the limit."""

    def to_json(self) -> dict[str, Any]:
        return {"ok": True, "total": self.total, "letters": [shown.to_json() for shown in self.letters]}


@dataclass(frozen=True)
class Opened:
    """A project's pipelines with the places of their dead letters."""

    project: Project
    pipelines: tuple[Pipeline, ...]
    """Resolved."""
    others: tuple[Pipeline, ...]
    engine: Any = field(repr=False)
    """A function that starts Spark, or gives the one that it has started."""

    @property
    def root(self) -> str:
        return resolve.storage_root(self.project, os.environ)

    def storage(self, path: str) -> Storage:
        return LocalStorage() if is_local(path) else self.engine().storage(path)

    def notes(self, pipeline: Pipeline) -> Notes:
        return Notes(self.storage(self.root), self.root, pipeline.name)

    def read(self, pipeline: Pipeline, columns: tuple[str, ...] | None = None) -> pa.Table:
        """Raises UserError."""
        everyone = {name for other in (*self.pipelines, *self.others) for name in names_in(other)}
        strangers = frozenset(everyone - names_in(pipeline))
        with told(pipeline, "dead_letters"):
            return Place(pipeline, Reach(self.storage, lambda: self.engine().session({})), strangers).read(columns)

    def replayed(self, pipeline: Pipeline) -> dict[str, str]:
        """By id, when a letter of the pipeline was put back."""
        with told(pipeline):
            return replayed(self.notes(pipeline).all())


@contextmanager
def opened(
    start: Path, selection: tuple[str, ...], environment: str | None, start_engine: StartEngine
) -> Iterator[Opened]:
    """Raises UserError. Spark is started only if something cannot be read without it, and ended here."""
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

        yield Opened(loaded.project, pipelines, loaded.others, engine)


@contextmanager
def told(pipeline: Pipeline, *keys: str) -> Iterator[None]:
    """A Fault that passes is a Problem at this place of the pipeline's file."""
    try:
        yield
    except Fault as fault:
        raise UserError(fault.at(pipeline.origin.at(*keys))) from None


def names_in(pipeline: Pipeline) -> set[str]:
    """All that can have dead letters."""
    return {*pipeline.nodes, *(sink.name for sink in pipeline.sinks)}


def list_letters(
    start: Path, selection: tuple[str, ...], environment: str | None, node: str | None, start_engine: StartEngine
) -> ListResult:
    """How many letters there are, by node and check."""
    with opened(start, selection, environment, start_engine) as project:
        groups: list[Group] = []
        for pipeline in project.pipelines:
            letters = to_briefs(Choice(node).of(project.read(pipeline, Brief._fields)))
            groups += _counted(once_each(letters), pipeline.name, project.replayed(pipeline)) if letters else []
        if node is not None and not groups:
            _require_node(node, project.pipelines, ())
    return ListResult(tuple(sorted(groups, key=lambda group: (-group.letters, group.pipeline, group.node))))


def show_letters(
    start: Path,
    selection: tuple[str, ...],
    environment: str | None,
    choice: Choice,
    limit: int | None,
    start_engine: StartEngine,
    *,
    again: bool = True,
) -> ShowResult:
    """Letters in full, the newest first. Without `again`, those that were not replayed. Raises UserError."""
    with opened(start, selection, environment, start_engine) as project:
        shown: list[Shown] = []
        for pipeline, letters in chosen(project, choice):
            done = project.replayed(pipeline)
            shown += [Shown(letter, (), done.get(letter.id)) for letter in letters if again or letter.id not in done]
    if not shown:
        raise UserError(Problem("DEADLETTER001", "all of these dead letters were replayed", "give `--again`"))
    shown.sort(key=lambda one: one.letter.at.timestamp() if one.letter.at else 0.0, reverse=True)
    lines = lines_of(one.letter for one in shown[:limit])
    taken = (replace(one, lines=lines.get((one.letter.file, one.letter.raw), ())) for one in shown[:limit])
    return ShowResult(tuple(taken), len(shown))


def chosen(project: Opened, choice: Choice) -> list[tuple[Pipeline, list[Letter]]]:
    """The letters that are meant, by pipeline, each once, oldest first. Raises UserError if there are none."""
    for beginning in choice.ids:
        if len(beginning) < _SHORTEST_ID:
            fix = f"give at least its first {_SHORTEST_ID} characters"
            raise UserError(Problem("DEADLETTER002", f"`{beginning}` is too short for an id", fix))
    found, seen, there = [], set(), 0
    for pipeline in project.pipelines:
        table = project.read(pipeline)
        there += len(table)
        seen |= set(table["node"].unique().to_pylist())
        letters = once_each(to_letters(choice.of(table), pipeline.name))
        if letters:
            found.append((pipeline, letters))
    _require_ids(choice, {letter.id for _, letters in found for letter in letters})
    if found:
        return found
    if choice.node is not None:
        _require_node(choice.node, project.pipelines, seen)
    message = "there are no such dead letters" if there else "there are no dead letters"
    raise UserError(Problem("DEADLETTER001", message, "see `penstock dead-letters list` for what there is"))


def _require_ids(choice: Choice, found: set[str]) -> None:
    for beginning in choice.ids:
        if len(beginning) == ID_LENGTH:
            matching = {beginning} & found
        else:
            matching = {id_ for id_ in found if id_.startswith(beginning)}
        if not matching:
            raise UserError(
                Problem("DEADLETTER002", f"there is no dead letter `{beginning}` among those that are meant",
                        "see `penstock dead-letters show` for the ids")
            )  # fmt: skip
        if len(matching) > 1:
            raise UserError(
                Problem("DEADLETTER002", f"{len(matching)} dead letters have an id that begins with `{beginning}`",
                        "give more of it")
            )  # fmt: skip


def _require_node(node: str, pipelines: tuple[Pipeline, ...], seen: Iterable[str]) -> None:
    known = {name for pipeline in pipelines for name in names_in(pipeline)} | set(seen)
    known -= {name for pipeline in pipelines for name in pipeline.nodes if pipeline.puts_aside(name)}
    if node not in known:
        message = f"there is no source, step or sink `{node}`{did_you_mean(node, known)}"
        raise UserError(Problem("DEADLETTER002", message, f"name one of: {', '.join(sorted(known))}"))


def _counted(letters: Iterable[Brief], pipeline: str, done: Mapping[str, str]) -> list[Group]:
    """Groups of letters that come oldest first."""
    grouped: dict[tuple[str, str], list[Brief]] = {}
    for letter in letters:
        grouped.setdefault((letter.node, letter.check), []).append(letter)
    return [
        Group(
            pipeline,
            node,
            check,
            len(members),
            sum(letter.id in done for letter in members),
            members[0].at,
            members[-1].at,
            members[0].reason,
        )
        for (node, check), members in grouped.items()
    ]
