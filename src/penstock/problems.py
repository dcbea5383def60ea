"""The one shape of every error and warning, and the exception that carries it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

Severity = Literal["error", "warning"]


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
    """What is wrong, where, and how to mend it."""

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
