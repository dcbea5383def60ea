"""Which test or example proves which feature, read from the marks in the tests' text: nothing is run.

`pytest.mark.covers("window.sliding")` may stand on a test, on a case of it (`pytest.param(…, marks=…)`), on a class of
tests, or on a whole module (`pytestmark`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.features import SECTIONS, Feature

ROOT = Path(__file__).parents[1]
_HOW = (
    "Every feature of the guide to Structured Streaming, and the tests that prove it here, on the real engine. The list\n"
    "is `tests/features.py`; a proof is a test with the mark `covers`. So this page says nothing that no test shows."
)


@dataclass(frozen=True, order=True)
class Proof:
    feature: str
    file: str
    """Of the test, below the project."""
    test: str
    line: int
    example: str = ""
    """The folder of the example that the test runs."""


def proofs(root: Path = ROOT) -> list[Proof]:
    """All that the tests claim, whether or not the feature exists."""
    found = [proof for file in sorted(root.glob("tests/**/test_*.py")) for proof in _in_file(file, root)]
    return sorted(set(found))


def _in_file(file: Path, root: Path) -> Iterator[Proof]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    examples = {folder.name for folder in (root / "examples").glob("*/")} if file.name == "test_examples.py" else set()
    of_module = [mark for node in tree.body if _is_pytestmark(node) for mark in _marks(node)]
    for test, outer in _tests(tree.body, of_module):
        for mark in [*outer, *(mark for decorator in test.decorator_list for mark in _marks(decorator))]:
            for feature, case in mark:
                words = {test.name.removeprefix("test_").partition("__")[0], case.partition("/")[0]}
                example = next(iter(words & examples), "")
                yield Proof(feature, str(file.relative_to(root)), test.name, test.lineno, example)


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["pytestmark"]


Mark = list[tuple[str, str]]
"""Features, each with the first value of the case that it stands on."""


def _tests(body: list[ast.stmt], outer: list[Mark]) -> Iterator[tuple[ast.FunctionDef, list[Mark]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node, outer
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            own = [mark for decorator in node.decorator_list for mark in _marks(decorator)]
            yield from _tests(node.body, [*outer, *own])


def _marks(node: ast.AST) -> Iterator[Mark]:
    """The features of every `covers(…)` below a node."""
    cases = {
        id(inner): str(call.args[0].value)
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and _name(call) == "param"
        and call.args
        and isinstance(call.args[0], ast.Constant)
        for inner in ast.walk(call)
    }
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and _name(call) == "covers":
            values = [ast.literal_eval(argument) for argument in call.args]
            yield [(str(value), cases.get(id(call), "")) for value in values]


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def coverage_page(note: str) -> str:
    by_feature: dict[str, list[Proof]] = {}
    for proof in proofs():
        by_feature.setdefault(proof.feature, []).append(proof)
    parts = [note, "# What of Structured Streaming is covered", _HOW]
    for section in SECTIONS:
        rows = [
            f"| {feature.what} | {_cell(feature, by_feature.get(feature.id, []))} |" for feature in section.features
        ]
        parts += [f"## {section.title}", "\n".join(["| feature | proved by |", "|---|---|", *rows])]
    return "\n\n".join(parts)


def _cell(feature: Feature, found: list[Proof]) -> str:
    examples = sorted({proof.example for proof in found if proof.example})
    links = [f"example [{name}](../examples/{name}/README.md)" for name in examples]
    links += [f"[{_words(proof)}](../{proof.file})" for proof in found if not proof.example]
    return "<br>".join(links) or feature.reason or "nothing yet"


def _words(proof: Proof) -> str:
    """A test's name is a sentence; its folder says what of."""
    return (
        f"{proof.file.removeprefix('tests/').removesuffix('.py')}: {proof.test.removeprefix('test_').replace('_', ' ')}"
    )
