"""The one shape of errors and warnings."""

from __future__ import annotations

import pytest

from penstock.problems import Problem, UserError, Where, did_you_mean, errors_in


def test_a_problem_reads_as_one_line_with_place_and_fix() -> None:
    problem = Problem("SPEC001", "it is gone", "bring it back", Where("a.yaml", 3, 7))
    assert str(problem) == "a.yaml:3:7: SPEC001 it is gone. Fix: bring it back"
    assert problem.to_json() == {
        "code": "SPEC001",
        "severity": "error",
        "message": "it is gone",
        "fix": "bring it back",
        "where": {"file": "a.yaml", "line": 3, "column": 7},
    }
    assert Problem("X", "no place", "none").to_json()["where"] is None


def test_places_are_counted_only_inside_texts() -> None:
    assert Where("a.sql", 5, 9, text=True).inside(2, 3) == Where("a.sql", 6, 12, text=True)
    assert Where("a.yaml", 5, 9).inside(2, 3) == Where("a.yaml", 5, 9)


def test_an_error_carries_all_its_problems() -> None:
    problems = (Problem("A", "one", "mend"), Problem("B", "two", "mend", severity="warning"))
    error = UserError(iter(problems))
    assert error.problems == problems
    assert errors_in(error.problems) == problems[:1]


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("ordres", ["orders", "clicks"], " — did you mean `orders`?"),
        ("xyz", ["orders", "clicks"], ""),
        ("orders", [], ""),
        ("", ["orders"], ""),
    ],
)
def test_names_what_was_meant_only_when_it_is_near(word: str, known: list[str], said: str) -> None:
    assert did_you_mean(word, known) == said


def test_a_notebook_shows_problems_in_place_of_a_traceback(monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    error = UserError((Problem("A", "one", "first", Where("In[3]", 4)), Problem("B", "two", "x", severity="warning")))
    assert error._render_traceback_() == ["error A  one", "  In[3]:4:1", "  fix: first", "warning B  two", "  fix: x"]
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[" in error._render_traceback_()[0]
