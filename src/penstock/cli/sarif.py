"""Problems as SARIF 2.1.0, the form that editors and CI show beside the code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.actions.explain import explain_code
from penstock.cli.screen import print_json
from penstock.problems import Problem, UserError
from penstock.version import VERSION


def write(problems: Sequence[Problem], place: Path) -> None:
    """To a file, or to the screen for `-`. Raises UserError."""
    if str(place) == "-":
        print_json(sarif(problems))
        return
    import json

    try:
        place.write_text(json.dumps(sarif(problems), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        message = f"`{place}` cannot be written: {error.strerror or error}"
        raise UserError(Problem("CHECK001", message, "name a file in a folder that exists")) from None


def sarif(problems: Sequence[Problem]) -> dict[str, Any]:
    """One run of one tool: its rules, and where each was broken."""
    codes = sorted({problem.code for problem in problems})
    driver = {
        "name": "penstock",
        "version": VERSION,
        "semanticVersion": VERSION,
        "rules": [_rule(code) for code in codes],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(problem, codes.index(problem.code)) for problem in problems],
            }
        ],
    }


def _rule(code: str) -> dict[str, Any]:
    explanation = explain_code(code)
    return {
        "id": code,
        "shortDescription": {"text": explanation.title},
        "fullDescription": {"text": explanation.why or explanation.title},
        "defaultConfiguration": {"level": explanation.severity},
    }


def _result(problem: Problem, index: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": problem.code,
        "ruleIndex": index,
        "level": problem.severity,
        "message": {"text": f"{problem.message}. Fix: {problem.fix}"},
    }
    if problem.where:
        place = {"startLine": problem.where.line, "startColumn": problem.where.column}
        uri = Path(problem.where.file).as_posix()
        found["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": place}}]
    return found
