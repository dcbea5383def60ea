"""`penstock dev`: services for development, on this machine alone."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from penstock.actions.dev import DevKafka, dev_kafka, wait_while_running
from penstock.cli.options import Json
from penstock.cli.screen import FAILED, end_with_problems, err, out, print_json
from penstock.engine.connectors import Progress
from penstock.problems import UserError

dev = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@dev.callback()
def group() -> None:
    """Services for development, on this machine alone."""


@dev.command()
def kafka(
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="Where it listens; 0 is any free port.")
    ] = 9092,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Where its data is kept; without it, in a temporary folder that is removed at the end.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="A topic to make; may be given several times.", metavar="NAME", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Runs a real Kafka broker on loopback until Ctrl-C: no container, no password. Unknown topics are made on use."""
    with signals_raise(), ExitStack() as held:
        with _starting(quiet=as_json) as fetched:
            started, broker = held.enter_context(dev_kafka(port, data, topic or (), fetched))
        if as_json:
            print_json(started.to_json())
        else:
            _show(started)
        sys.stdout.flush()  # whoever reads us through a pipe waits for the address
        try:
            wait_while_running(broker)
        except KeyboardInterrupt:
            return
        except UserError as error:
            end_with_problems(error.problems, Path(), as_json=False, code=FAILED)  # the JSON is out already


def _show(started: DevKafka) -> None:
    kept = " (removed at the end)" if started.temporary else ""
    out.print(f"Kafka runs on [bold]{started.servers}[/], up in {started.started_in_seconds:.1f} s. Ctrl-C ends it.\n")
    out.print(f"  {started.export}\n", soft_wrap=True)
    out.print(f"Data:   {escape(started.folder)}{kept}", soft_wrap=True)
    if started.topics:
        out.print(f"Topics: {', '.join(started.topics)}", soft_wrap=True)


@contextmanager
def _starting(quiet: bool) -> Iterator[Progress | None]:
    if quiet or not err.is_terminal:
        yield None
        return
    with err.status("[dim]Starting Kafka[/]") as status:
        yield lambda done, total, name: status.update(f"[dim]Fetched {name} ({done} of {total})[/]")


@contextmanager
def signals_raise() -> Iterator[None]:
    """The first SIGINT or SIGTERM raises KeyboardInterrupt; those that follow must not disturb the end."""

    def asked(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, asked)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
