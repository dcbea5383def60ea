"""Dead letters in full: the record, why it was put aside, and the lines of its file that hold it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.dead_letters.file_lines import lines_of
from penstock.dead_letters.letters import Letter, LetterFilter
from penstock.dead_letters.opened import Opened, chosen
from penstock.problems import Problem, UserError, errors_in


@dataclass(frozen=True)
class ShownLetter:
    """A letter, with what is known of it beyond."""

    letter: Letter
    lines: tuple[int, ...] = ()
    """The lines of its file that hold the record, as far as the file is there."""
    replayed_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        return self.letter.to_json() | {"lines": list(self.lines), "replayed_at": self.replayed_at}


@dataclass(frozen=True)
class ShownLetters:
    """The newest letters first."""

    letters: tuple[ShownLetter, ...]
    total: int
    """How many were meant, before the limit."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with pipelines whose letters are not among these."""

    def to_json(self) -> dict[str, Any]:
        told = {"problems": [problem.to_json() for problem in self.problems]} if self.problems else {}
        letters = [shown.to_json() for shown in self.letters]
        return {"ok": not errors_in(self.problems), "total": self.total, "letters": letters} | told


def shown_letters(project: Opened, choice: LetterFilter, limit: int | None, *, again: bool = True) -> ShownLetters:
    """Letters in full, the newest first. Without `again`, those that were not replayed. Raises UserError."""
    found: list[ShownLetter] = []
    for pipeline, letters in chosen(project, choice):
        done = project.replayed(pipeline)
        found += [ShownLetter(letter, (), done.get(letter.id)) for letter in letters if again or letter.id not in done]
    if not found:
        raise UserError(Problem("DEADLETTER001", "all of these dead letters were replayed", "give `--again`"))
    found.sort(key=lambda one: one.letter.at.timestamp() if one.letter.at else 0.0, reverse=True)
    lines = lines_of(one.letter for one in found[:limit])
    taken = (replace(one, lines=lines.get((one.letter.file, one.letter.raw), ())) for one in found[:limit])
    return ShownLetters(tuple(taken), len(found), project.problems)
