"""The one shape of every error and warning, and the exception that carries it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning"]
_SECRET = re.compile(r"passw|secret|token|credential|key_?store|://[^/\s]*@", re.IGNORECASE)
_LONGEST = 160
_BOLD, _RED, _GREEN, _YELLOW, _CYAN = "1", "1;31", "1;32", "1;33", "36"


@dataclass(frozen=True, order=True)
class Where:
    """A place in a user's file; lines and columns count from 1."""

    file: str
    line: int = 1
    column: int = 1
    text: bool = False
    """True when this is the first character of a text, so that places inside it can be counted from here."""

    def inside(self, line: int, column: int) -> Where:
        """The place `line` lines (from 1) and `column` characters (from 0) into the text that starts here."""
        if not self.text:
            return self
        return replace(self, line=self.line + line - 1, column=self.column + column)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    """What is wrong, where, and how to fix it."""

    code: str
    message: str
    fix: str
    where: Where | None = None
    severity: Severity = "error"

    def to_json(self) -> dict[str, Any]:
        place = self.where and {"file": self.where.file, "line": self.where.line, "column": self.where.column}
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "fix": self.fix,
            "where": place,
        }

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        stop = "" if self.message.endswith(("?", ".")) else "."
        return f"{place}{self.code} {self.message}{stop} Fix: {self.fix}"


class UserError(Exception):
    """Raised where a user's mistake stops the work; holds at least one Problem."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback."""
        return rendered(self.problems, with_excerpt=True)


def rendered(problems: Iterable[Problem], *, with_excerpt: bool = False) -> list[str]:
    """Problems as lines for a notebook or a Python prompt, in colour unless `NO_COLOR` is set."""
    plain = bool(os.environ.get("NO_COLOR"))

    def styled(text: str, style: str) -> str:
        return text if plain else f"\x1b[{style}m{text}\x1b[0m"

    lines: list[str] = []
    for problem in problems:
        colour = _RED if problem.severity == "error" else _YELLOW
        lines.append(f"{styled(problem.severity, colour)} {styled(problem.code, _BOLD)}  {problem.message}")
        if problem.where and problem.where.file:
            lines.append(f"  {styled(str(problem.where), _CYAN)}")
            if with_excerpt and (line := _line_at(problem.where)):
                number = str(problem.where.line)
                lines.append(f"  {number} │ {line}")
                lines.append(f"  {' ' * len(number)} │ {' ' * (problem.where.column - 1)}{styled('^', colour)}")
        lines.append(f"  {styled('fix:', _GREEN)} {problem.fix}")
    return lines


def _line_at(where: Where) -> str | None:
    """The line of a file below the current folder, or of a notebook's cell. Not one that may hold a secret."""
    if cell := re.fullmatch(r"In\[(\d+)\]", where.file):
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython else None
        cells = shell.user_ns.get("In", []) if shell else []
        text = str(cells[int(cell[1])]) if int(cell[1]) < len(cells) else ""
    else:
        try:
            text = Path(where.file).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
    lines = text.splitlines()
    if not 1 <= where.line <= len(lines):
        return None
    line = lines[where.line - 1].expandtabs(1)[:_LONGEST]
    return None if _SECRET.search(line) or where.column > _LONGEST else line


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` — did you mean `x`?`, or nothing when no known word is near."""
    near = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f" — did you mean `{near[0]}`?" if near else ""


def errors_in(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(problem for problem in problems if problem.severity == "error")


class Fault(Exception):
    """A part cannot do what it is declared to do. The engine tells it as a Problem at the place of `keys` in it."""

    def __init__(self, code: str, message: str, fix: str, keys: tuple[str | int, ...] = ()) -> None:
        self.code, self.message, self.fix, self.keys = code, message, fix, keys
        super().__init__(message)

    def at(self, where: Where | None) -> Problem:
        return Problem(self.code, self.message, self.fix, where)
