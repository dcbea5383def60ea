"""A pipeline in Python: the same model as in YAML, and mistakes at the line that made them."""

# ruff: noqa: E501 - a case in a table is one line

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from penstock.pipeline import from_yaml
from penstock.pipeline.load import read as read_file
from penstock.pipeline.model import Pipeline
from penstock.problems import Problem, UserError

YAML = """\
pipeline: orders
description: What each city spends.
latency: low
sources:
  orders:
    type: files
    path: data/orders
    format: {type: csv, header: true, schema: "city STRING, amount DOUBLE, at TIMESTAMP"}
    watermark: {column: at, delay: 10 minutes}
  ticks: {type: rate, rows_per_second: 5}
steps:
  large: {sql: SELECT * FROM orders WHERE amount > 100}
  unique: {python: "cleaning:unique", watermark: {column: at, delay: 1 hour}}
sinks:
  table: {of: unique, type: files, path: out, format: {type: parquet}, partition_by: [city]}
  screen: {of: ticks, type: console, num_rows: 5}
queries:
  unique: {mode: append, trigger: 10 seconds, spark: {spark.sql.shuffle.partitions: 4}, was: distinct}
listeners: ["audit:Audit"]
"""

PYTHON = """\
from cleaning import unique
from penstock import Pipeline, sinks, sources
from penstock.formats.csv import CsvRead
from penstock.query.watermark import Watermark

pipeline = Pipeline("orders", latency="low", description="What each city spends.", listeners=["audit:Audit"])
pipeline.source(
    "orders",
    sources.Files(
        path="data/orders",
        format=CsvRead(header=True, schema="city STRING, amount DOUBLE, at TIMESTAMP"),
        watermark=Watermark(column="at", delay="10 minutes"),
    ),
)
pipeline.source("ticks", sources.Rate(rows_per_second=5))
pipeline.sql("large", "SELECT * FROM orders WHERE amount > 100")
pipeline.step(watermark={"column": "at", "delay": "1 hour"})(unique)
pipeline.sink("table", sinks.Files(path="out", format="parquet", partition_by=["city"]), of="unique")
pipeline.sink("screen", sinks.Console(num_rows=5), of="ticks")
pipeline.query("unique", mode="append", trigger="10 seconds", spark={"spark.sql.shuffle.partitions": 4}, was="distinct")
"""


@pytest.fixture(autouse=True)
def _modules_as_they_were() -> Iterator[None]:
    modules, path = dict(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        if not name.startswith("penstock."):
            del sys.modules[name]


def in_python(tmp_path: Path, text: str) -> list[Pipeline]:
    (tmp_path / "flow.py").write_text(dedent(text))
    return read_file(tmp_path / "flow.py", tmp_path)


def problem_in(tmp_path: Path, text: str) -> Problem:
    with pytest.raises(UserError) as raised:
        in_python(tmp_path, text)
    (problem,) = raised.value.problems
    assert problem.message
    assert problem.fix
    return problem


def test_yaml_and_python_give_equal_pipelines_of_different_origin(tmp_path: Path) -> None:
    (tmp_path / "cleaning.py").write_text("def unique(large): ...\n")
    (tmp_path / "orders.yaml").write_text(YAML)
    from_text = from_yaml.load(tmp_path / "orders.yaml", tmp_path)
    (from_code,) = in_python(tmp_path, PYTHON)
    assert from_code == from_text
    assert from_code.queries == from_text.queries
    assert [node.spec.given() for node in from_code.sources] == [node.spec.given() for node in from_text.sources]
    assert from_code.origin != from_text.origin
    assert str(from_text.sources[1].origin.where) == "orders.yaml:10:3"
    assert str(from_code.sources[1].origin.where) == f"{tmp_path}/flow.py:15:1"
    assert str(from_code.queries[0].origin.where) == f"{tmp_path}/flow.py:20:1"


def test_pipelines_that_mean_something_else_are_not_equal(tmp_path: Path) -> None:
    (tmp_path / "cleaning.py").write_text("def unique(large): ...\n")
    (one,) = in_python(tmp_path, PYTHON)
    (other,) = in_python(tmp_path, PYTHON.replace("rows_per_second=5", "rows_per_second=6"))
    assert one != other


TWO = """\
    from penstock import Pipeline, sinks, sources

    first = Pipeline("first")
    second = Pipeline("second")
    again = first
    for pipeline in (first, second):
        pipeline.source("ticks", sources.Rate())

    @first.step()
    def doubled(ticks):
        raise AssertionError("a step is not run when it is declared")

    @second.step("halved")
    def any_name(ticks):
        raise AssertionError("a step is not run when it is declared")

    first.sink("out", sinks.Console(), of="doubled")
    second.sink("out", sinks.Console(), of="halved")
    """


def test_a_module_may_hold_several_pipelines(tmp_path: Path) -> None:
    first, second = in_python(tmp_path, TWO)
    assert (first.name, second.name) == ("first", "second")
    assert [(step.name, step.inputs, step.spec.given()["python"]) for step in (*first.steps, *second.steps)] == [
        ("doubled", ("ticks",), "flow:doubled"),
        ("halved", ("ticks",), "flow:any_name"),
    ]


def test_a_module_without_pipelines_has_none(tmp_path: Path) -> None:
    assert in_python(tmp_path, "x = 1\n") == []


HEAD = "from penstock import Pipeline, sinks, sources\np = Pipeline('p')\np.source('a', sources.Rate())\n"
TAIL = "p.sink('o', sinks.Console(), of='a')\n"


@pytest.mark.parametrize(
    ("code", "line", "text", "said"),
    [
        pytest.param("SPEC014", 2, "x = 1\nx + 'a'\n", "TypeError", id="raises"),
        pytest.param("SPEC014", 2, "x = 1\nraise SystemExit(3)\n", "SystemExit", id="exits"),
        pytest.param("SPEC014", 5, "def f():\n    g()\ndef g():\n    x = 1\n    return x / 0\nf()\n", "ZeroDivision", id="raises deep inside"),
        pytest.param("SPEC014", 2, "x = 1\ny = (\n", "SyntaxError", id="syntax error"),
        pytest.param("SPEC014", 2, "x = 1\n\ty = 2\n", "IndentationError", id="indentation"),
        pytest.param("SPEC014", 1, "import not_installed_anywhere\n", "ModuleNotFoundError", id="missing module"),
        pytest.param("SPEC007", 4, HEAD + "p.source('b', sources.Rate(rows=5))\n" + TAIL, "rows", id="unknown field"),
        pytest.param("SPEC009", 4, HEAD + "p.source('b', sources.Rate(rows_per_second=0))\n" + TAIL, "rows_per_second", id="wrong value"),
        pytest.param("SPEC008", 4, HEAD + "p.source('b', sources.Socket(host='x'))\n" + TAIL, "port", id="missing field"),
        pytest.param("SPEC009", 4, HEAD + "p.query('a', mode='upsert')\n" + TAIL, "mode", id="wrong mode"),
        pytest.param("SPEC007", 4, HEAD + "p.query('a', mod='update')\n" + TAIL, "mod", id="unknown setting"),
        pytest.param("SPEC009", 4, HEAD + "p.sql('s', '')\n" + TAIL, "sql", id="empty SQL"),
        pytest.param("SPEC008", 4, HEAD + "p.sql('s', 'SELECT 1', watermark={'column': 'x'})\n" + TAIL, "delay", id="half a watermark"),
        pytest.param("SPEC009", 4, HEAD + "p.source('b', {'type': 'rate'})\n" + TAIL, "source `b` is a dict", id="dict as source"),
        pytest.param("SPEC009", 4, HEAD + "p.sink('x', sources.Rate(), of='a')\n" + TAIL, "sink `x` is a Rate", id="source as sink"),
        pytest.param("GRAPH003", 4, HEAD + "p.source('a', sources.Rate())\n" + TAIL, "stands twice", id="twice"),
        pytest.param("SPEC009", 2, HEAD, "sinks", id="no sinks"),
        pytest.param("SPEC009", 2, HEAD.replace("'p'", "'p', latency='fast'") + TAIL, "latency", id="wrong latency"),
        pytest.param("SPEC009", 2, HEAD.replace("'p'", "'my pipeline'") + TAIL, "pipeline", id="wrong name"),
    ],
)  # fmt: skip
def test_one_mistake_gives_one_problem_at_its_line(tmp_path: Path, code: str, line: int, text: str, said: str) -> None:
    problem = problem_in(tmp_path, text)
    assert problem.code == code
    assert said in problem.message
    assert problem.where is not None
    assert problem.where.file.endswith("flow.py")
    assert problem.where.line == line


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read_file(tmp_path / "none.py", tmp_path)
    assert raised.value.problems[0].code == "SPEC001"
