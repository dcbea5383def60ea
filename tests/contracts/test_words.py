"""Texts for users keep to the words of docs/writing.md, in the rooms that were rewritten so far."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/penstock"
REWRITTEN = sorted(
    file
    for pattern in ("engine/spark_problems.py", "engine/failure_problems.py", "supervise/*.py", "prepare/*.py",
                    "actions/*.py")
    for file in SOURCE.glob(pattern)
)  # fmt: skip
VAGUE = ("see what Spark says", "and change it")


def banned() -> list[str]:
    """The first column of the table of words."""
    table = (ROOT / "docs/writing.md").read_text().partition("| do not write |")[2].partition("\n\n")[0]
    rows = re.findall(r"(?m)^\| (.*?) \|", table)
    return [word.strip() for row in rows for word in row.split(",")]


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module, without docstrings."""
    tree = ast.parse(file.read_text())
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.lineno, node.value


def test_the_table_is_read():
    assert {"mend", "anew", "for ever", "is no column"} <= set(banned())


@pytest.mark.parametrize("file", REWRITTEN, ids=lambda file: str(file.relative_to(SOURCE)))
def test_texts_for_users_have_no_banned_words(file):
    found = [
        f"{file.name}:{line}: `{word}` in {text!r}"
        for line, text in texts(file)
        for word in (*banned(), *VAGUE)
        if " " in text and re.search(rf"\b{re.escape(word)}\b", text)
    ]
    assert not found
