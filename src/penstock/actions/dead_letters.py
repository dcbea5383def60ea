"""Lists dead letters, shows them, and puts them back where they came from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.dead_letters.letters import LetterFilter
from penstock.dead_letters.listed import ListedLetters, listed_letters
from penstock.dead_letters.opened import Opened
from penstock.dead_letters.shown import ShownLetters, shown_letters
from penstock.engine import resolve
from penstock.pipeline.load import Loaded, load
from penstock.pipeline.model import Pipeline
from penstock.prepare.judging import Judged
from penstock.prepare.needs import StartEngine, needs_of
from penstock.problems import UserError, errors_in

if TYPE_CHECKING:
    from penstock.dead_letters.replay.planning import ReplayOptions
    from penstock.dead_letters.replay.put_back import ReplayResult
    from penstock.engine.session import Engine


def list_letters(
    start: Path, selection: tuple[str, ...], environment: str | None, node: str | None, start_engine: StartEngine
) -> ListedLetters:
    """How many letters there are, by node and check. Raises UserError."""
    with _opened(start, selection, environment, start_engine) as project:
        return listed_letters(project, node)


def show_letters(
    start: Path,
    selection: tuple[str, ...],
    environment: str | None,
    choice: LetterFilter,
    limit: int | None,
    start_engine: StartEngine,
    *,
    again: bool = True,
) -> ShownLetters:
    """Letters in full, the newest first. Without `again`, those that were not replayed. Raises UserError."""
    with _opened(start, selection, environment, start_engine) as project:
        return shown_letters(project, choice, limit, again=again)


def replay_letters(
    start: Path,
    selection: tuple[str, ...],
    environment: str | None,
    choice: LetterFilter,
    options: ReplayOptions,
    start_engine: StartEngine,
) -> ReplayResult:
    """Puts letters back. Raises UserError before anything is sent; what happens then is in the result."""
    from penstock.dead_letters.replay.put_back import put_back

    with _opened(start, selection, environment, start_engine) as project:
        return put_back(project, choice, options)


@contextmanager
def _opened(
    start: Path, selection: tuple[str, ...], environment: str | None, start_engine: StartEngine
) -> Iterator[Opened]:
    """Raises UserError. Spark is started only if something cannot be read without it, and ended here."""
    loaded = load(start, selection, environment)
    sound = _sound(loaded)
    with resolve.masking(loaded.project, os.environ), ExitStack() as cleanup:
        pipelines = tuple(resolve.pipeline(one, loaded.project, os.environ) for one in sound)

        @cache
        def engine() -> Engine:
            from penstock.prepare.sharing import sharing_problems

            judged = Judged(loaded.project, sound, pipelines)
            started = start_engine(loaded.project, *needs_of(judged))
            cleanup.callback(started.close)
            if problems := sharing_problems(started, judged):
                raise UserError(problems)
            return started

        try:
            yield Opened(loaded.project, pipelines, loaded.others, engine, loaded.problems)
        except UserError as error:
            raise UserError((*loaded.problems, *error.problems)) from None


def _sound(loaded: Loaded) -> tuple[Pipeline, ...]:
    """The pipelines whose letters can be told from those of others. Raises UserError if something is wrong with all.

    A file that cannot be read does not keep anybody from the letters of the other pipelines.
    """
    names = Counter(pipeline.name for pipeline in loaded.pipelines)
    sound = tuple(pipeline for pipeline in loaded.pipelines if names[pipeline.name] == 1)
    if errors_in(loaded.problems) and not sound:
        raise UserError(loaded.problems)
    return sound
