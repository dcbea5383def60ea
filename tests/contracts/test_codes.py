"""The contract of every code that no rule raises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from penstock.checks.every_rule import rules
from penstock.codes import CODES, Code
from penstock.problems import Problem

Judged = Callable[[str], tuple[Problem, ...]]

SHOWN = [code for code in CODES if code.wrong]


def test_every_code_is_explained_once() -> None:
    counts = Counter([rule.code for rule in rules()] + [code.code for code in CODES])
    assert [code for code, count in counts.items() if count > 1] == []
    assert all(code.title and code.why for code in CODES)


@pytest.mark.parametrize("code", SHOWN, ids=lambda code: code.code)
def test_what_a_code_shows_as_wrong_is_told_by_it_alone(code: Code, judged: Judged) -> None:
    assert [problem.code for problem in judged(code.wrong)] == [code.code]


@pytest.mark.parametrize("code", SHOWN, ids=lambda code: code.code)
def test_what_a_code_shows_as_right_is_right(code: Code, judged: Judged) -> None:
    assert judged(code.right) == ()
