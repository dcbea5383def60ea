"""The contract of every code that no rule raises."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import penstock
from penstock.checks.every_rule import rules
from penstock.codes import Code, all_codes
from penstock.problems import Problem

Judged = Callable[[str], tuple[Problem, ...]]

ROOT = Path(penstock.__file__).parent
CODES = tuple(all_codes())
SHOWN = [code for code in CODES if code.wrong]


def test_every_code_is_explained_once() -> None:
    counts = Counter([rule.code for rule in rules()] + [code.code for code in CODES])
    assert [code for code, count in counts.items() if count > 1] == []
    assert all(code.title and code.why for code in CODES)


def raised_in(folder: Path, pattern: str = "**/*.py") -> set[str]:
    files = (file for file in folder.glob(pattern) if file.name != "codes.py")
    return {code for file in files for code in re.findall(r'"([A-Z]+\d{3})"', file.read_text())}


@pytest.mark.parametrize("file", sorted(ROOT.rglob("codes.py")), ids=lambda file: file.parent.name)
def test_a_code_stands_in_a_room_that_raises_it(file: Path) -> None:
    room = file.parent
    raised = raised_in(ROOT, "*.py") if room == ROOT else raised_in(room)
    module = import_module(".".join(("penstock", *room.relative_to(ROOT).parts, "codes")))
    assert {code.code for code in module.CODES} <= raised


@pytest.mark.parametrize("code", SHOWN, ids=lambda code: code.code)
def test_what_a_code_shows_as_wrong_is_told_by_it_alone(code: Code, judged: Judged) -> None:
    assert [problem.code for problem in judged(code.wrong)] == [code.code]


@pytest.mark.parametrize("code", SHOWN, ids=lambda code: code.code)
def test_what_a_code_shows_as_right_is_right(code: Code, judged: Judged) -> None:
    assert judged(code.right) == ()
