"""`penstock run`: a supervised run with a live view."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.engine import starter
from penstock.cli.live import view_for
from penstock.cli.options import Env, Json, Pipelines, Project
from penstock.cli.screen import FAILED, PROBLEMS, USAGE, err, out, print_json, print_json_line, show_problems
from penstock.notation.durations import to_milliseconds

if TYPE_CHECKING:
    from penstock.actions.run import RunResult
    from penstock.supervise.stopping import Stop


def run(
    pipelines: Pipelines = None,
    once: Annotated[bool, typer.Option("--once", help="Take all that is there now, then end.")] = False,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="DURATION", help="Run for this long: `30s`, `10m`, `2 hours`.", show_default=False
        ),
    ] = None,
    events: Annotated[
        bool,
        typer.Option("--events", help="Print each event as a line of JSON when it happens; the result is the last."),
    ] = False,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Runs pipelines. Ctrl-C lets the batches under way commit; a second one ends at once."""
    from penstock.actions.run import RunOptions
    from penstock.actions.run import run as run_action
    from penstock.pipeline.load import find_root
    from penstock.supervise.stopping import Stop

    options = RunOptions(once=once, for_seconds=_seconds(for_))
    stop = Stop()
    view = view_for(once=once, as_json=as_json, events=events)
    with stopped_by_signals(stop), view:
        start_engine = starter(quiet=as_json or events, then=view.preparing)
        chosen = tuple(pipelines or ())
        result = run_action(
            project, chosen, env, options, start_engine, stop, view.snapshot, view.console_line, (view.event,)
        )
    if events:
        print_json_line({"event": "run_ended"} | result.to_json())
    elif as_json:
        print_json(result.to_json())
    else:
        show_problems(result.problems, find_root(project) or project, out if result.started else err)
        view.ended(result.queries)
    raise typer.Exit(exit_code(result))


def exit_code(result: RunResult) -> int:
    if result.ok:
        return 0
    return FAILED if result.started else PROBLEMS


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """SIGINT and SIGTERM ask the run to end; a third one breaks off even what cannot be asked."""

    def asked(number: int, frame: object) -> None:
        if stop.at_once:
            raise KeyboardInterrupt
        stop.ask()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return to_milliseconds(text) / 1_000
    except ValueError as error:
        err.print(f"--for: {error}")
        raise typer.Exit(USAGE) from None
