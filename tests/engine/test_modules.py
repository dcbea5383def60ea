"""The project's own modules reach the workers."""

from __future__ import annotations

from pathlib import Path

import pytest

PIPELINE = """
    pipeline: spelled
    latency: low
    sources: {numbers: {type: files, path: in, format: {type: csv, schema: n INT}}}
    steps: {words: {python: steps:in_words}}
    sinks: {out: {of: words, type: files, path: out, format: text}}
"""
MODULES = {
    "steps.py": """
from pyspark.sql.functions import udf

from lexicon.english import word


def in_words(numbers):
    return numbers.select(udf(word)("n").alias("word"))
""",
    "lexicon/__init__.py": "",
    "lexicon/english.py": "def word(n):\n    return ('one', 'two')[n - 1]\n",
    "in/1.csv": "1\n2\n",
}


def words_in(folder: Path, spark) -> list[str]:
    return sorted(row.value for row in spark.read.text(str(folder)).collect())


@pytest.mark.covers("operation.function")
@pytest.mark.spark
def test_a_function_of_a_module_runs_in_the_workers(project_at, run_once, spark):
    root = project_at(PIPELINE, files=MODULES)
    result = run_once(root)
    assert result.problems == ()
    assert words_in(root / "out", spark) == ["one", "two"]


@pytest.mark.spark
def test_an_error_in_a_worker_has_the_line_of_the_users_code(project_at, run_once):
    root = project_at(PIPELINE, files=MODULES | {"in/1.csv": "7\n"})
    (problem,) = run_once(root).problems
    assert problem.code == "FAILURE006"
    assert problem.where.file.endswith(".py")
    assert "IndexError: tuple index out of range" in problem.message
    assert "Traceback" not in problem.message
