"""Starts the engine with something to look at while it starts."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn

from penstock.cli.screen import err

if TYPE_CHECKING:
    from penstock.engine.session import Engine
    from penstock.pipeline.project import Project
    from penstock.prepare.needs import StartEngine


def starter(quiet: bool, then: Callable[[], None] = lambda: None, *, brief: bool = False) -> StartEngine:
    """A way to start Spark that shows a spinner, and a bar while connectors are fetched; `then` goes on showing.

    `brief`: for a command that only looks.
    """

    def start(project: Project, connectors: tuple[str, ...], settings: dict[str, str]) -> Engine:
        from penstock.actions.record_archive import record_in_background
        from penstock.engine import session

        gc.enable()
        with _shown(quiet) as progress:
            spinner = progress.add_task("Starting Spark", total=None)
            fetching = None

            def fetched(done: int, total: int, name: str) -> None:
                nonlocal fetching
                if fetching is None:
                    fetching = progress.add_task("Fetching connectors", total=total)
                progress.update(fetching, completed=done, total=total, description=f"Fetched {name}")

            engine = session.start(project.name, settings, project.local_folder, connectors, fetched, brief=brief)
            progress.remove_task(spinner)
        atexit.register(record_in_background, settings)
        then()
        return engine

    return start


@contextmanager
def _shown(quiet: bool) -> Iterator[Progress]:
    columns = (TextColumn("[dim]{task.description}[/]"), BarColumn(bar_width=30))
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as progress:
        yield progress
