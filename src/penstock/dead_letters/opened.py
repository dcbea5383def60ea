"""The dead letters of a project, opened: where they are, which of them are meant, and which were put back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.dead_letters.letters import ID_LENGTH, Letter, LetterFilter, Place, Reach, once_each, to_letters
from penstock.dead_letters.replay_notes import ReplayNotes, replayed
from penstock.engine import resolve
from penstock.notation.paths import is_local
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project
from penstock.problems import Fault, Problem, UserError, did_you_mean
from penstock.storage.storage import LocalStorage, Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.engine.session import Engine

_SHORTEST_ID = 4


@dataclass(frozen=True)
class Opened:
    """A project's pipelines with the places of their dead letters."""

    project: Project
    pipelines: tuple[Pipeline, ...]
    """Resolved."""
    others: tuple[Pipeline, ...]
    engine: Callable[[], Engine] = field(repr=False)
    """Starts Spark, or gives the one that it has started."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with the pipelines that were left out."""

    @property
    def root(self) -> str:
        return resolve.storage_root(self.project, os.environ)

    def storage(self, path: str) -> Storage:
        return LocalStorage() if is_local(path) else self.engine().storage(path)

    def notes(self, pipeline: Pipeline) -> ReplayNotes:
        return ReplayNotes(self.storage(self.root), self.root, pipeline.name)

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
def told(pipeline: Pipeline, *keys: str) -> Iterator[None]:
    """A Fault that passes is a Problem at this place of the pipeline's file."""
    try:
        yield
    except Fault as fault:
        raise UserError(fault.at(pipeline.origin.at(*keys))) from None


def names_in(pipeline: Pipeline) -> set[str]:
    """All that can have dead letters."""
    return {*pipeline.nodes, *(sink.name for sink in pipeline.sinks)}


def chosen(project: Opened, choice: LetterFilter) -> list[tuple[Pipeline, list[Letter]]]:
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
        require_node(choice.node, project.pipelines, seen)
    message = "there are no such dead letters" if there else "there are no dead letters"
    raise UserError(Problem("DEADLETTER001", message, "see `penstock dead-letters list` for what there is"))


def _require_ids(choice: LetterFilter, found: set[str]) -> None:
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


def require_node(node: str, pipelines: tuple[Pipeline, ...], seen: Iterable[str] = ()) -> None:
    """Raises UserError if nothing of this name can have dead letters."""
    known = {name for pipeline in pipelines for name in names_in(pipeline)} | set(seen)
    known -= {name for pipeline in pipelines for name in pipeline.nodes if pipeline.puts_aside(name)}
    if node not in known:
        message = f"there is no source, step or sink `{node}`{did_you_mean(node, known)}"
        raise UserError(Problem("DEADLETTER002", message, f"name one of: {', '.join(sorted(known))}"))
