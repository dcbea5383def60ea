"""Which test or example proves which feature, read from the marks in the tests' text: nothing is run.

`pytest.mark.covers("window.sliding")` may stand on a test, on a case of it (`pytest.param(…, marks=…)`), on a class of
tests, or on a whole module (`pytestmark`). `covers(*…)` with the name of a table of cases in the same module stands for
the features that the table names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.features import SECTIONS, Feature

ROOT = Path(__file__).parents[1]
_HOW = (
    "Every feature of the guide to Structured Streaming, and the tests that prove it here, on the real engine. The\n"
    "list is `tests/features.py`; a proof is a test with the mark `covers`. So it says nothing that no test shows."
)


@dataclass(frozen=True, order=True)
class Proof:
    feature: str
    file: str
    """Of the test, below the project."""
    test: str
    example: str = ""
    """The folder of the example that the test runs."""


def proofs(root: Path = ROOT) -> list[Proof]:
    """All that the tests claim, whether or not the feature exists."""
    found = [proof for file in sorted(root.glob("tests/**/test_*.py")) for proof in _in_file(file, root)]
    return sorted(set(found))


def _in_file(file: Path, root: Path) -> Iterator[Proof]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    examples = {folder.name for folder in (root / "examples").glob("*/")} if file.name == "test_examples.py" else set()
    named = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
             if isinstance(target, ast.Name)}  # fmt: skip
    tables = {name: _features_in(value) for name, value in named.items()}
    of_module = list(_marks(named["pytestmark"], tables)) if "pytestmark" in named else []
    for test, marks in _tests(tree.body, of_module, tables):
        for feature, case in marks:
            words = {test.name.removeprefix("test_").partition("__")[0], case.partition("/")[0]}
            example = next(iter(words & examples), "")
            yield Proof(feature, str(file.relative_to(root)), test.name, example)


Mark = tuple[str, str]
"""A feature, and the first value of the case that it stands on."""
Tables = dict[str, list[str]]
"""By name, the features that are named in a value of the module."""


def _features_in(value: ast.expr) -> list[str]:
    known = {feature.id for section in SECTIONS for feature in section.features}
    return [node.value for node in ast.walk(value) if isinstance(node, ast.Constant) and node.value in known]


def _tests(body: list[ast.stmt], outer: list[Mark], tables: Tables) -> Iterator[tuple[ast.FunctionDef, list[Mark]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            marks = [*outer, *(mark for decorator in node.decorator_list for mark in _marks(decorator, tables))]
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node, marks
            elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield from _tests(node.body, marks, tables)


def _marks(node: ast.AST, tables: Tables) -> Iterator[Mark]:
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
            for argument in call.args:
                names = [node.id for node in ast.walk(argument) if isinstance(node, ast.Name)]
                features = [feature for name in names for feature in tables.get(name, [])]
                for feature in features if isinstance(argument, ast.Starred) else [ast.literal_eval(argument)]:
                    yield str(feature), cases.get(id(call), "")


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
    links += [f"the cases of [{feature.rule}](problems/{feature.rule}.md)"] if feature.rule else []
    return "<br>".join(links) or "nothing yet"


def _words(proof: Proof) -> str:
    """A test's name is a sentence; its folder says what of."""
    return (
        f"{proof.file.removeprefix('tests/').removesuffix('.py')}: {proof.test.removeprefix('test_').replace('_', ' ')}"
    )
