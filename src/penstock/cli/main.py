"""The `penstock` command. Each subcommand is one file; this one lists them and catches what they raise."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from penstock.problems import Problem, UserError
from penstock.version import VERSION

COMMANDS = (
    "init", "demo", "check", "graph", "show", "plan", "run", "checkpoint", "dead-letters", "doctor", "explain", "dev",
    "bench",
)  # fmt: skip
"""In the order in which they are listed and used; each is `penstock.cli.<name>`, a function or a group of commands."""


class _Commands(TyperGroup):
    """Imports only the command that is called, so that `check --fast` does not pay for the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        part = getattr(importlib.import_module(f"penstock.cli.{name}"), name)
        command = typer.main.get_command(part if isinstance(part, typer.Typer) else _single(cmd_name, part))
        command.name = cmd_name
        return command


def _single(name: str, function: Callable[..., None]) -> typer.Typer:
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    single.command(name)(function)
    return single


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Streams on Apache Spark, declared, checked before they run, and run with a named guarantee.",
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"penstock {VERSION}\n")
        raise typer.Exit


@app.callback()
def penstock(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Exit codes: 0 well, 1 problems found, 2 wrong usage, 3 the run failed."""
    # Nothing of what is imported now will ever be rubbish; looking for some costs a tenth of a fast check.
    gc.disable()
    logging.getLogger().addHandler(logging.NullHandler())  # what libraries log is not for the terminal
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for plugins reads every installed package
    from penstock.cli.screen import FAILED, PROBLEMS, end_with_problems, err

    try:
        app()
    except UserError as error:
        with _exit_code():
            end_with_problems(error.problems, Path(), "--json" in sys.argv)
        sys.exit(PROBLEMS)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PROBLEMS)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        problem = Problem(
            "PROJECT009", f"{named}{error.strerror or error}", "free some space, or mend the rights of the file"
        )
        with _exit_code():
            end_with_problems([problem], Path(), "--json" in sys.argv)
    except Exception as error:  # noqa: BLE001 - the last place: a bug of ours is told as one, not as a user's mistake
        log = _write_crash()
        err.print(
            f"Penstock failed: {type(error).__name__}: {error}\nThis is a bug in Penstock. The details are in {log}.",
            markup=False,
        )
        sys.exit(FAILED)


class _exit_code:  # noqa: N801 - reads as a phrase
    """Turns typer's Exit into the process's exit code."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, typer.Exit):
            sys.exit(error.exit_code)


def _write_crash() -> Path:
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="penstock-", suffix=".log", delete=False, encoding="utf-8") as file:
        traceback.print_exc(file=file)
        return Path(file.name)
