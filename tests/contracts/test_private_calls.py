"""One package touches the private members of PySpark and Py4J."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import penstock
from penstock import spark_internals
from tests.engine import test_spark_internals

SOURCE = Path(penstock.__file__).parent
INTERNALS = sorted(Path(spark_internals.__file__).parent.glob("*.py"))
PRIVATE = re.compile(
    "_(accumulatorServer|gateway|instantiatedSession|sc|j(c|cols|df|map|reader|schema|seq|sc|sparkSession|sq|vm|write))"
)
PACKAGES = ("py4j", "pyspark.java_gateway")


def private_calls(tree: ast.AST) -> Iterator[int]:
    """The lines that reach into PySpark."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if PRIVATE.fullmatch(name):
                yield node.lineno
            case ast.Import(names=names) if any(one.name.startswith(PACKAGES) for one in names):
                yield node.lineno
            case ast.ImportFrom(module=str(module)) if module.startswith(PACKAGES):
                yield node.lineno


def test_no_other_module_reaches_into_pyspark():
    found = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file in sorted(SOURCE.rglob("*.py"))
        for line in private_calls(ast.parse(file.read_text(encoding="utf-8")))
        if file not in INTERNALS
    ]
    assert found == []


def test_what_reaches_into_pyspark_is_seen():
    text = "from py4j.protocol import Py4JError\nimport py4j\nspark._jvm.java\nframe._jdf.schema()\nspark.range(1)\n"
    assert sorted(private_calls(ast.parse(text))) == [1, 2, 3, 4]


def test_each_call_into_pyspark_is_made_on_a_real_spark():
    functions = [
        node.name
        for file in INTERNALS
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name in spark_internals.__all__
    ]
    tests = Path(test_spark_internals.__file__).read_text(encoding="utf-8")
    assert [name for name in functions if f"spark_internals.{name}(" not in tests] == []
