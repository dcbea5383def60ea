"""A pipeline's file: what it becomes, and how each mistake in it is told."""

# ruff: noqa: E501 - a case in a table is one line

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.checks.every_rule import judge
from penstock.checks.rule import Subject
from penstock.pipeline import from_yaml, project
from penstock.pipeline.model import Pipeline
from penstock.pipeline.yaml_text import parse
from penstock.problems import Problem, UserError
from penstock.query.triggers import Trigger

Judged = Callable[[str], tuple[Problem, ...]]
Read = Callable[[str], Pipeline]

ORDERS = """\
pipeline: orders
description: What each city spends.
latency: low
sources:
  orders:
    type: files
    path: data/orders
    format: {type: csv, header: true, schema: "city STRING, amount DOUBLE, at TIMESTAMP"}
    max_files_per_trigger: 10
    watermark: {column: at, delay: 10 minutes}
  ticks: {type: rate, rows_per_second: 5}
steps:
  large: {sql: SELECT * FROM orders WHERE amount > 100}
  spent:
    sql: |
      SELECT window.start AS minute, city, sum(amount) AS spent
      FROM large GROUP BY window(at, '1 minute'), city
sinks:
  table: {of: spent, type: files, path: out/spent, format: parquet, partition_by: [city]}
  screen: {of: ticks, type: console}
queries:
  spent: {trigger: 10 seconds, spark: {spark.sql.shuffle.partitions: 4}}
listeners: [listeners:Audit]
"""


def test_a_file_becomes_a_pipeline(read: Read) -> None:
    pipeline = read(ORDERS)
    assert (pipeline.name, pipeline.latency, pipeline.listeners) == ("orders", "low", ("listeners:Audit",))
    assert pipeline.description == "What each city spends."
    assert [source.name for source in pipeline.sources] == ["orders", "ticks"]
    assert {step.name: step.inputs for step in pipeline.steps} == {"large": ("orders",), "spent": ("large",)}
    assert {sink.name: sink.of for sink in pipeline.sinks} == {"table": "spent", "screen": "ticks"}
    spent, ticks = pipeline.queries
    assert (spent.name, spent.trigger, spent.latency) == ("spent", Trigger("processing_time", "10 seconds"), "low")
    assert spent.settings.spark == {"spark.sql.shuffle.partitions": 4}
    assert (ticks.name, ticks.trigger, ticks.settings.mode) == ("ticks", Trigger("default"), "append")
    assert [node.name for node in pipeline.upstream("spent")] == ["orders", "large", "spent"]
    assert [source.name for source in pipeline.sources_of("spent")] == ["orders"]


def test_every_node_remembers_where_it_was_written(read: Read) -> None:
    pipeline = read(ORDERS)
    orders, ticks = pipeline.sources
    assert str(orders.origin.where) == "pipeline.yaml:5:3"
    assert str(orders.origin.at("format", "schema")) == "pipeline.yaml:8:48"
    assert str(orders.origin.at("none")) == "pipeline.yaml:5:3"
    assert str(ticks.origin.at("rows_per_second")) == "pipeline.yaml:11:40"
    assert str(pipeline.steps[1].origin.at("sql")) == "pipeline.yaml:16:7"
    assert str(pipeline.queries[0].origin.at("trigger")) == "pipeline.yaml:22:20"


def test_sql_may_stand_in_its_own_file(tmp_path: Path, read: Read, judged: Judged) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "large.sql").write_text("SELECT *\nFROM ticks\n")
    text = "pipeline: p\nsources: {ticks: {type: rate}}\nsteps: {large: {sql_file: sql/large.sql}}\nsinks: {o: {of: large, type: console}}\n"
    step = read(text).steps[0]
    assert (step.spec.given()["sql"], step.inputs) == ("SELECT *\nFROM ticks\n", ("ticks",))
    (tmp_path / "sql" / "large.sql").write_text("SELECT *\nFROM tocks\n")
    (problem,) = judged(text)
    assert (problem.code, str(problem.where)) == ("GRAPH001", "sql/large.sql:2:6")


def test_a_python_step_is_read_and_not_run(tmp_path: Path, read: Read) -> None:
    (tmp_path / "steps.py").write_text("raise SystemExit\n\ndef both(a, /, b, *rest, c=None, **more):\n    ...\n")
    text = "pipeline: p\nsources: {a: {type: rate}}\nsteps: {s: {python: 'steps:both'}}\nsinks: {o: {of: s, type: console}}\n"
    assert read(text).steps[0].inputs == ("a", "b", "c")


@pytest.mark.parametrize(
    ("sql", "inputs"),
    [
        ("SELECT * FROM A JOIN a USING (x)", ("a",)),
        ("WITH c AS (SELECT * FROM b) SELECT * FROM c JOIN a USING (x)", ("b", "a")),
        ("SELECT * FROM a WHERE x IN (SELECT x FROM b)", ("a", "b")),
        ("SELECT * FROM a UNION ALL SELECT * FROM b", ("a", "b")),
        ("SELECT * FROM `a`, LATERAL explode(x) t", ("a",)),
        ("SELECT window.start FROM a GROUP BY window(at, '1 minute')", ("a",)),
        ("SELECT * FROM a WHERE city = '${CITY}' LIMIT ${LIMIT:-5}", ("a",)),
        ("SELECT * FROM ${TABLE:-a}", ("a",)),
        ("SELECT 1", ()),
        ("SELEC * FRM a", ("a",)),
    ],
)
def test_the_inputs_of_sql_are_the_nodes_that_it_names(read: Read, sql: str, inputs: tuple[str, ...]) -> None:
    data = {
        "pipeline": "p",
        "sources": {"a": {"type": "rate"}, "b": {"type": "rate"}},
        "steps": {"s": {"sql": sql}},
        "sinks": {"o": {"of": "s", "type": "console"}},
    }
    assert sorted(read(yaml.safe_dump(data)).steps[0].inputs) == sorted(inputs)


PLACE = "▶"
RATE = "sources: {a: {type: rate}}\n"
CONSOLE = "sinks: {o: {of: a, type: console}}\n"
TOP = "pipeline: p\n" + RATE
MISTAKES = {
    # the top of the file
    "unknown key": ("SPEC007", f"{TOP}{CONSOLE}▶colour: red\n", "unknown key `colour`"),
    "misspelled key": ("SPEC007", f"{TOP}{CONSOLE}▶latancy: low\n", "did you mean `latency`?"),
    "misspelled required key": ("SPEC007", f"{TOP}▶sink: {{o: {{of: a, type: console}}}}\n", "did you mean `sinks`?"),
    "missing required key": ("SPEC008", f"▶pipeline: p\n{CONSOLE}", "`sources` is missing"),
    "missing name": ("SPEC008", f"▶{RATE}{CONSOLE}", "`pipeline` is missing"),
    "wrong type of section": ("SPEC009", f"pipeline: p\nsources: ▶[a]\n{CONSOLE}", "`sources` has a wrong value"),
    "section left empty": ("SPEC009", f"pipeline: p\nsources:▶\n{CONSOLE}", "`sources` has a wrong value"),
    "section with nothing in it": ("SPEC009", f"{TOP}sinks: ▶{{}}\n", "`sinks` has a wrong value"),
    "wrong choice": ("SPEC009", f"{TOP}{CONSOLE}latency: ▶fast\n", "'realtime', 'low'"),
    "name with spaces": ("SPEC009", f"pipeline: ▶my orders\n{RATE}{CONSOLE}", "`pipeline` has a wrong value"),
    "number as name": ("SPEC009", f"pipeline: ▶5\n{RATE}{CONSOLE}", "`pipeline` has a wrong value"),
    "no mapping": ("SPEC009", "▶[a, b]\n", "a pipeline is a mapping"),
    "text only": ("SPEC009", "▶pipeline\n", "a pipeline is a mapping"),
    "reference as name": ("SPEC009", f"pipeline: ▶${{NAME}}\n{RATE}{CONSOLE}", "cannot be a ${reference}"),
    "reference as section": ("SPEC009", f"pipeline: p\nsources: ▶${{ALL}}\n{CONSOLE}", "cannot be a ${reference}"),
    "wrong listener": ("SPEC009", f"{TOP}{CONSOLE}listeners: ▶audit:Audit\n", "`listeners` has a wrong value"),
    # sources
    "source that is no mapping": ("SPEC009", f"pipeline: p\nsources: {{a: ▶rate}}\n{CONSOLE}", "`a` is not a source"),
    "source without type": ("SPEC008", f"pipeline: p\nsources: {{a: ▶{{}}}}\n{CONSOLE}", "`type` is missing"),
    "source with misspelled type key": ("SPEC007", f"pipeline: p\nsources: {{a: {{▶tpye: rate}}}}\n{CONSOLE}", "`type`"),
    "unknown type": ("SPEC010", f"pipeline: p\nsources: {{a: {{type: ▶rat}}}}\n{CONSOLE}", "did you mean `rate`?"),
    "list as type": ("SPEC010", f"pipeline: p\nsources: {{a: {{type: ▶[rate]}}}}\n{CONSOLE}", "no source of type"),
    "reference as type": ("SPEC010", f"pipeline: p\nsources: {{a: {{type: '▶${{T}}'}}}}\n{CONSOLE}", "no source of type"),
    "unknown key of a source": (
        "SPEC007",
        f"pipeline: p\nsources:\n  a:\n    type: rate\n    ▶row_per_second: 5\n{CONSOLE}",
        "did you mean `rows_per_second`?",
    ),
    "misspelled required key of a source": (
        "SPEC007",
        f"pipeline: p\nsources: {{a: {{type: socket, hots: x, port: 1}}}}\n{CONSOLE}".replace("hots", "▶hots"),
        "did you mean `host`?",
    ),
    "missing key of a source": (
        "SPEC008",
        f"pipeline: p\nsources:\n  a: ▶{{type: socket, host: x}}\n{CONSOLE}",
        "`port` is missing",
    ),
    "wrong value of a source": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: rate, rows_per_second: ▶many}}}}\n{CONSOLE}",
        "`rows_per_second` has a wrong value: 'many'",
    ),
    "value out of bounds": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: rate, rows_per_second: ▶0}}}}\n{CONSOLE}",
        "greater than 0",
    ),
    "wrong duration": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: rate, ramp_up_time: ▶soon}}}}\n{CONSOLE}",
        "is not a duration",
    ),
    "endless duration": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: rate, ramp_up_time: ▶{'9' * 400} days}}}}\n{CONSOLE}",
        "is not a duration",
    ),
    "NUL in a path": (
        "SPEC009",
        f'pipeline: p\nsources: {{a: {{type: files, format: text, path: "▶a\\0b"}}}}\n{CONSOLE}',
        "NUL",
    ),
    "unknown format": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: files, path: in, format: ▶yaml}}}}\n{CONSOLE}",
        "is not a format",
    ),
    "unknown key of a format": (
        "SPEC007",
        f"pipeline: p\nsources: {{a: {{type: files, path: in, format: {{type: csv, schema: x INT, ▶heder: true}}}}}}\n{CONSOLE}",
        "did you mean `header`?",
    ),
    "unknown key of a watermark": (
        "SPEC007",
        f"pipeline: p\nsources: {{a: {{type: rate, watermark: {{column: timestamp, ▶dely: 1 minute}}}}}}\n{CONSOLE}",
        "did you mean `delay`?",
    ),
    "stream without schema": (
        "SPEC009",
        f"pipeline: p\nsources:\n  a: ▶{{type: files, path: in, format: csv}}\n{CONSOLE}",
        "needs `schema`",
    ),
    "option with a key of its own": (
        "SPEC009",
        f"pipeline: p\nsources:\n  a:\n    type: files\n    path: in\n    format: ▶{{type: csv, schema: x INT, spark_options: {{HEADER: true}}}}\n{CONSOLE}",
        "write `header` instead",
    ),
    "list as option": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: spark, format: rate, spark_options: {{x: ▶[1]}}}}}}\n{CONSOLE}",
        "`x` has a wrong value: [1] should be a text, a number",
    ),
    "reference as choice": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: table, table: t, read: '▶${{READ}}'}}}}\n{CONSOLE}",
        "cannot be a ${reference}",
    ),
    "reference as format": (
        "SPEC009",
        f"pipeline: p\nsources: {{a: {{type: files, path: in, format: '▶${{FORMAT}}'}}}}\n{CONSOLE}",
        "cannot be a ${reference}",
    ),
    # steps
    "step that is no mapping": ("SPEC009", f"{TOP}steps: {{s: ▶SELECT 1}}\n{CONSOLE}", "`s` is not a step"),
    "step that does nothing": ("SPEC008", f"{TOP}steps: {{s: ▶{{}}}}\n{CONSOLE}", "says nothing to do"),
    "misspelled kind of step": ("SPEC007", f"{TOP}steps: {{s: {{▶sqll: SELECT 1}}}}\n{CONSOLE}", "did you mean `sql`?"),
    "step of two kinds": ("SPEC013", f"{TOP}steps: {{s: {{▶sql: SELECT 1, python: 'a:b'}}}}\n{CONSOLE}", "`sql`"),
    "unknown key of a step": ("SPEC007", f"{TOP}steps: {{s: {{sql: SELECT 1, ▶watermrk: x}}}}\n{CONSOLE}", "`watermark`"),
    "empty SQL": ("SPEC009", f"{TOP}steps: {{s: {{sql: '▶'}}}}\n{CONSOLE}", "`sql` has a wrong value"),
    "SQL that is a number": ("SPEC009", f"{TOP}steps: {{s: {{sql: ▶5}}}}\n{CONSOLE}", "`sql` has a wrong value"),
    "missing SQL file": ("SPEC001", f"{TOP}steps: {{s: {{sql_file: ▶none.sql}}}}\n{CONSOLE}", "cannot be read"),
    "SQL file that is a folder": ("SPEC001", f"{TOP}steps: {{s: {{sql_file: ▶.}}}}\n{CONSOLE}", "cannot be read"),
    "SQL file with a NUL": ("SPEC001", f'{TOP}steps: {{s: {{sql_file: "▶a\\0b"}}}}\n{CONSOLE}', "cannot be read"),
    "SQL file outside": ("SPEC011", f"{TOP}steps: {{s: {{sql_file: ▶../x.sql}}}}\n{CONSOLE}", "outside"),
    "SQL file far outside": ("SPEC011", f"{TOP}steps: {{s: {{sql_file: ▶/etc/passwd}}}}\n{CONSOLE}", "outside"),
    "SQL file that is a number": ("SPEC009", f"{TOP}steps: {{s: {{sql_file: ▶5}}}}\n{CONSOLE}", "not a path"),
    "SQL file with an unknown key": (
        "SPEC007",
        f"{TOP}steps: {{s: {{sql_file: good.sql, ▶watermrk: x}}}}\n{CONSOLE}",
        "did you mean `watermark`?",
    ),
    "missing module": ("SPEC012", f"{TOP}steps: {{s: {{python: '▶stepz:both'}}}}\n{CONSOLE}", "did you mean `stepsy`?"),
    "missing function": ("SPEC012", f"{TOP}steps: {{s: {{python: '▶stepsy:boht'}}}}\n{CONSOLE}", "did you mean `both`?"),
    "module that is not Python": ("SPEC012", f"{TOP}steps: {{s: {{python: '▶broken:both'}}}}\n{CONSOLE}", "is not Python"),
    "module without function": ("SPEC009", f"{TOP}steps: {{s: {{python: ▶stepsy}}}}\n{CONSOLE}", "`python`"),
    "module that is a dot": ("SPEC009", f"{TOP}steps: {{s: {{python: '▶.:f'}}}}\n{CONSOLE}", "`python`"),
    "endless module": ("SPEC009", f"{TOP}steps: {{s: {{python: '▶{'m' * 300}:f'}}}}\n{CONSOLE}", "`python`"),
    "reference as module": ("SPEC009", f"{TOP}steps: {{s: {{python: '▶${{M}}:f'}}}}\n{CONSOLE}", "`python`"),
    "standard module": ("SPEC012", f"{TOP}steps: {{s: {{python: '▶json:dumps'}}}}\n{CONSOLE}", "no module `json`"),
    # sinks
    "sink that is no mapping": ("SPEC009", f"{TOP}sinks: {{o: ▶console}}\n", "`o` is not a sink"),
    "sink of nothing": ("SPEC008", f"{TOP}sinks: {{o: ▶{{type: console}}}}\n", "`of` is missing"),
    "sink with misspelled of": ("SPEC007", f"{TOP}sinks: {{o: {{▶off: a, type: console}}}}\n", "did you mean `of`?"),
    "sink of a list": ("SPEC009", f"{TOP}sinks: {{o: {{of: ▶[a], type: console}}}}\n", "`of` is not a name"),
    "unknown sink": ("SPEC010", f"{TOP}sinks: {{o: {{of: a, type: ▶consol}}}}\n", "did you mean `console`?"),
    "unknown key of a sink": ("SPEC007", f"{TOP}sinks: {{o: {{of: a, type: console, ▶rows: 5}}}}\n", "unknown key `rows`"),
    # queries
    "query that is no mapping": ("SPEC009", f"{TOP}{CONSOLE}queries: {{a: ▶10 seconds}}\n", "`a` is not a query"),
    "wrong trigger": ("SPEC009", f"{TOP}{CONSOLE}queries: {{a: {{trigger: ▶soon}}}}\n", "is not a trigger"),
    "reference as trigger": ("SPEC009", f"{TOP}{CONSOLE}queries: {{a: {{trigger: '▶${{T}}'}}}}\n", "${reference}"),
    "reference as former name": ("SPEC009", f"{TOP}{CONSOLE}queries: {{a: {{was: '▶${{T}}'}}}}\n", "${reference}"),
    "unknown key of a query": ("SPEC007", f"{TOP}{CONSOLE}queries: {{a: {{▶mod: update}}}}\n", "did you mean `mode`?"),
    "wrong mode": ("SPEC009", f"{TOP}{CONSOLE}queries: {{a: {{mode: ▶upsert}}}}\n", "`mode` has a wrong value"),
    # the graph
    "unknown step in plain SQL": (
        "GRAPH001",
        f"{TOP}steps: {{s: {{sql: SELECT * FROM ▶b}}}}\nsinks: {{o: {{of: s, type: console}}}}\n",
        "reads from `b`",
    ),
    "unknown step in quoted SQL": (
        "GRAPH001",
        f"{TOP}steps:\n  s:\n    sql: \"SELECT x FROM a JOIN ▶bb USING (x)\"\nsinks: {{o: {{of: s, type: console}}}}\n",
        "reads from `bb`",
    ),
    "unknown step in a block": (
        "GRAPH001",
        f"{TOP}steps:\n  s:\n    sql: |\n\n      SELECT x\n        FROM a\n        JOIN ▶bb USING (x)\nsinks: {{o: {{of: s, type: console}}}}\n",
        "reads from `bb`",
    ),
    "unknown step in folded SQL": (
        "GRAPH001",
        f"{TOP}steps:\n  s:\n    sql: ▶SELECT x\n      FROM bb\nsinks: {{o: {{of: s, type: console}}}}\n",
        "reads from `bb`",
    ),
    "cycle": (
        "GRAPH002",
        f"{TOP}steps:\n  ▶b: {{sql: SELECT * FROM a JOIN c USING (x)}}\n  c: {{sql: SELECT * FROM b}}\nsinks: {{o: {{of: b, type: console}}}}\n",
        "in a circle: c → b → c",
    ),
    "step made from itself": (
        "GRAPH002",
        f"{TOP}steps: {{▶s: {{sql: SELECT * FROM s}}}}\nsinks: {{o: {{of: s, type: console}}}}\n",
        "s → s",
    ),
    "name clash": (
        "GRAPH003",
        f"{TOP}steps: {{▶A: {{sql: SELECT 1 AS one}}}}\n{CONSOLE}",
        "at line 2",
    ),
    "reserved name": (
        "GRAPH005",
        "pipeline: p\nsources: {a: {type: rate}, ▶order: {type: rate}}\nsinks: {o: {of: order, type: console}}\n",
        "reserved word",
    ),
    "dotted name": ("GRAPH005", f"{TOP}sinks: {{▶a.b.c.d: {{of: a, type: console}}}}\n", "`a.b.c.d` is not a name"),
    "name that ends in a line": ("GRAPH005", f'{TOP}sinks: {{▶"o\\n": {{of: a, type: console}}}}\n', "is not a name"),
    "number as sink's name": ("GRAPH005", f"{TOP}sinks: {{▶5: {{of: a, type: console}}}}\n", "`5` is not a name"),
    "unknown sink of": ("GRAPH006", f"{TOP}sinks: {{o: {{of: ▶aa, type: console}}}}\n", "did you mean `a`?"),
    "settings of no query": ("GRAPH007", f"{TOP}{CONSOLE}queries: {{▶o: {{mode: update}}}}\n", "there is no query `o`"),
    # SQL
    "SQL that cannot be parsed": (
        "SQL001",
        f"{TOP}steps:\n  s:\n    sql: |\n      SELECT window(at, '1 minute') FROM a WHERE x > ▶) AND y\nsinks: {{o: {{of: s, type: console}}}}\n",
        "is not understood",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "marked", "said"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake_gives_one_problem_at_its_place(
    tmp_path: Path, judged: Judged, code: str, marked: str, said: str
) -> None:
    (tmp_path / "good.sql").write_text("SELECT * FROM a")
    (tmp_path / "stepsy.py").write_text("def both(a): ...\n")
    (tmp_path / "broken.py").write_text("def both(:\n")
    before, _, after = marked.partition(PLACE)
    (problem,) = [problem for problem in judged(before + after) if problem.code != "GRAPH004"]
    assert problem.code == code
    assert said in problem.message
    assert problem.fix
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert str(problem.where) == f"pipeline.yaml:{line}:{column}"


def test_one_run_tells_all_mistakes(judged: Judged) -> None:
    text = """
        pipeline: p
        sources: {a: {type: rat}, b: {type: rate, rows: 5}}
        steps: {s: {}}
        sinks: {o: {of: a}}
        queries: {a: {trigger: soon}}
        """
    problems = judged(dedent(text))
    assert [problem.code for problem in problems] == ["SPEC010", "SPEC007", "SPEC008", "SPEC008", "SPEC009"]


ROOT = Path("/nowhere/at/all")


def check_text(text: str) -> None:
    """Loads and judges a text: the outcome is a pipeline or Problems, never another exception."""
    try:
        pipeline = from_yaml.from_document(parse(text, "p.yaml"), ROOT)
        problems = judge(Subject(project.bare(ROOT), pipeline))
        assert all(problem.where for problem in problems)
    except UserError as error:
        problems = error.problems
        assert problems
    for problem in problems:
        assert problem.code
        assert problem.message
        assert problem.fix
        assert problem.where is not None
        assert problem.where.file == "p.yaml"
        assert 1 <= problem.where.line <= len(text.splitlines()) + 1
        assert problem.where.column >= 1


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.text(max_size=6)
    | st.sampled_from(["${X}", "$${X}", "a\0b", "", "x" * 300, "10 seconds", "${X:-5}", "..", "files", "sql"])
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "of", "sql", "path", "format", "x"]) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)  # fmt: skip
SECTION = st.dictionaries(st.sampled_from(["a", "b", "select"]) | st.text(max_size=3), NESTED, max_size=3)


@given(st.text())
def test_any_text_is_a_pipeline_or_problems(text: str) -> None:
    check_text(text)


@given(NESTED)
def test_any_data_is_a_pipeline_or_problems(data: Any) -> None:
    check_text(yaml.safe_dump(data, allow_unicode=True))


@given(SECTION | NESTED, SECTION | NESTED, SECTION | NESTED, SECTION | NESTED)
def test_any_sections_are_a_pipeline_or_problems(sources: Any, steps: Any, sinks: Any, queries: Any) -> None:
    data = {"pipeline": "p", "sources": sources, "steps": steps, "sinks": sinks, "queries": queries}
    check_text(yaml.safe_dump(data, allow_unicode=True))


LINES = ORDERS.splitlines()


@given(st.data())
def test_a_pipeline_with_mutated_lines_is_a_pipeline_or_problems(data: st.DataObject) -> None:
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["delete", "repeat", "replace", "cut", "indent", "move"])):
            case "delete":
                del lines[index]
            case "repeat":
                lines.insert(index, lines[index])
            case "replace":
                lines[index] = data.draw(st.text(max_size=20) | st.sampled_from(LINES))
            case "cut":
                lines[index] = lines[index][: data.draw(st.integers(0, len(lines[index])))]
            case "indent":
                lines[index] = data.draw(st.sampled_from([" ", "\t", "- ", "? "])) + lines[index]
            case "move":
                lines.append(lines.pop(index))
        assume(lines)
    check_text("\n".join(lines))


def paths_in(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [found for key, value in inner for found in ((*path, key), *paths_in(value, (*path, key)))]


VALUES = yaml.safe_load(ORDERS)


@given(st.sampled_from(paths_in(VALUES)), NESTED)
def test_a_pipeline_with_a_replaced_value_is_a_pipeline_or_problems(path: tuple[str | int, ...], value: Any) -> None:
    data = yaml.safe_load(ORDERS)
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    check_text(yaml.safe_dump(data, allow_unicode=True))


@given(st.binary())
def test_any_file_is_a_pipeline_or_problems(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(raw)
    try:
        from_yaml.load(file, file.parent)
        return
    except UserError as error:
        problems = error.problems
    assert problems
    assert all(problem.where and problem.where.file == "any.yaml" for problem in problems)


@pytest.mark.parametrize("number", [10**30, -(10**30), math.inf, 10**400])
def test_huge_numbers_are_refused_where_they_do_not_fit(judged: Judged, number: float) -> None:
    written = "1e999" if number == math.inf else str(number)
    problems = judged(f"pipeline: p\nsources: {{a: {{type: socket, host: x, port: {written}}}}}\n{CONSOLE}")
    assert [(problem.code, problem.where and problem.where.line) for problem in problems] == [("SPEC009", 2)]


def test_aliases_and_merge_keys_give_the_same_pipeline_as_values_written_out(read: Read) -> None:
    anchored = """
        pipeline: p
        sources:
          a: &rate {type: rate, rows_per_second: 5}
          b: {<<: *rate, rows_per_second: 6}
          c: *rate
        sinks: {o: {of: a, type: console}}
        """
    written_out = """
        pipeline: p
        sources:
          a: {type: rate, rows_per_second: 5}
          b: {type: rate, rows_per_second: 6}
          c: {type: rate, rows_per_second: 5}
        sinks: {o: {of: a, type: console}}
        """
    assert read(dedent(anchored)) == read(dedent(written_out))
