"""How things look in the terminal, and the exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer

from penstock.notation.counts import counted
from penstock.notation.references import MASK, line_without_secrets
from penstock.problems import Problem

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WELL, PROBLEMS, USAGE, FAILED = 0, 1, 2, 3
_AT_SECRETS = frozenset({"SECRET001"})
"""The codes whose place is where a secret begins: the rest of that line is not shown."""


class _Screen:
    """A Rich console that is made when something is first drawn: a fast check that finds nothing draws nothing."""

    def __init__(self, stderr: bool) -> None:
        self._stderr = stderr

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        return Console(highlight=False, emoji=False, stderr=self._stderr)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._console, name)

    def __enter__(self) -> Any:  # `with` looks methods up on the class, past __getattr__
        return self._console.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._console.__exit__(*error)


out: Console = cast("Console", _Screen(stderr=False))
err: Console = cast("Console", _Screen(stderr=True))


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def print_json_line(value: Any) -> None:
    """On one line, and at once: somebody may be reading the other end of a pipe."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def show_problems(
    problems: Sequence[Problem], root: Path, console: Console = out, pipelines: Mapping[str, str] | None = None
) -> None:
    """Each with its line and a caret below it, then a count; with `pipelines`, by file, under the name of each."""
    by_pipeline: dict[str, list[Problem]] = {}
    for problem in problems:
        file = problem.where.file if problem.where else ""
        by_pipeline.setdefault((pipelines or {}).get(file, ""), []).append(problem)
    for name, found in by_pipeline.items():
        if name:
            console.print(f"[bold]{name}[/] [dim]{'─' * max(3, 60 - len(name))}[/]")
        for problem in found:
            console.print(_problem(problem, root), soft_wrap=True)
    if problems:
        console.print(_count(problems))


def end_with_problems(problems: Sequence[Problem], root: Path, as_json: bool, code: int = PROBLEMS) -> NoReturn:
    if as_json:
        print_json({"ok": False, "problems": [problem.to_json() for problem in problems]})
    else:
        show_problems(problems, root, err)
    raise typer.Exit(code)


def _problem(problem: Problem, root: Path) -> Text:
    from rich.text import Text

    colour = "red" if problem.severity == "error" else "yellow"
    text = Text()
    text.append(f"{problem.severity} ", style=f"bold {colour}")
    text.append(problem.code, style="bold")
    text.append(f"  {problem.message}\n")
    if problem.where:
        text.append(f"  {problem.where}\n", style="cyan")
        text.append_text(_excerpt(problem, root, colour))
    text.append("  fix: ", style="bold green")
    text.append(f"{problem.fix}\n")
    return text


def _excerpt(problem: Problem, root: Path, colour: str) -> Text:
    from rich.text import Text

    where = problem.where
    text = Text()
    if where is None:
        return text
    try:
        lines = (root / where.file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return text
    if not 1 <= where.line <= len(lines):
        return text
    line = lines[where.line - 1].expandtabs(1)
    before = line_without_secrets(line[: where.column - 1])
    # A secret can be a line of its own, below its key: nothing there tells that it is one.
    shown = f"{before}{MASK}" if problem.code in _AT_SECRETS else line_without_secrets(line)
    number = str(where.line)
    text.append(f"  {number} │ ", style="dim")
    text.append(f"{shown[:160]}\n")
    text.append(f"  {' ' * len(number)} │ ", style="dim")
    text.append(" " * min(len(before), 160) + "^\n", style=colour)
    return text


def _count(problems: Iterable[Problem]) -> Text:
    from rich.text import Text

    severities = [problem.severity for problem in problems]
    errors, warnings = severities.count("error"), severities.count("warning")
    parts = []
    if errors:
        parts.append(counted(errors, "error"))
    if warnings:
        parts.append(counted(warnings, "warning"))
    return Text(", ".join(parts), style="bold red" if errors else "bold yellow")


def is_interactive() -> bool:
    return out.is_terminal and not os.environ.get("CI")
