"""A source that another query of the project feeds: judged, made and run in order, on a real Spark."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from penstock.actions.check import check
from penstock.actions.run import RunResult
from penstock.prepare.fitting_schemas import misfits
from penstock.problems import Problem

pytestmark = pytest.mark.spark

LINES = {"in/a.txt": "one\ntwo\n"}
BRONZE = """
pipeline: bronze
sources: {{lines: {{type: files, path: in, format: text}}}}
steps: {{rows: {{sql: "{sql}"}}}}
sinks: {{bronze_out: {{of: rows, {sink}}}}}
"""
SILVER = """
pipeline: silver
sources: {{bronze: {{{source}}}}}
steps: {{loud: {{sql: "{sql}"}}}}
sinks: {{silver_out: {{of: loud, type: delta, path: out/silver}}}}
"""
DELTA = "type: delta, path: out/bronze"
SELECT = "SELECT value AS line, length(value) AS size FROM lines"
PARQUET = "type: files, path: out/bronze, format: {type: parquet, schema: %s}"


def bronze(sql: str = SELECT, sink: str = DELTA) -> str:
    return BRONZE.format(sql=sql, sink=sink)


def silver(sql: str = "SELECT upper(line) AS line FROM bronze", source: str = DELTA) -> str:
    return SILVER.format(sql=sql, source=source)


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.code for problem in problems]


def states(result: RunResult) -> dict[str, str]:
    return {f"{view.pipeline}.{view.name}": view.state for view in result.queries}


def rows(spark, root, name: str = "silver") -> list[tuple]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(str(root / "out" / name)).collect())


@pytest.mark.parametrize(
    ("down", "said"),
    [
        (silver("SELECT upper(lin) AS line FROM bronze"), "`lin`"),
        (silver("SELECT size + array(1) AS n FROM bronze"), "size"),
    ],
)
def test_a_column_that_the_upstream_does_not_write_is_told_with_both_ends(project_at, start_engine, down, said):
    root = project_at(bronze(), down, files=LINES)
    (problem,) = check(root, ("silver",), None, start_engine).problems  # the upstream is judged though not asked for
    assert problem.code == "SPARK002"
    assert problem.where is not None
    assert problem.where.file == "pipelines/p1.yaml"
    assert said in problem.message
    assert "sink `bronze_out` of `bronze` (pipelines/p0.yaml:4:9) writes `line` STRING, `size` INT" in problem.message


def test_an_upstream_that_has_problems_leaves_the_downstream_unjudged(project_at, start_engine):
    root = project_at(bronze("SELECT nothing FROM lines"), silver(), files=LINES)
    problems = check(root, (), None, start_engine).problems
    assert [(one.code, one.severity) for one in problems] == [("SPARK002", "error"), ("CHAIN006", "warning")]
    (alone,) = check(root, ("silver",), None, start_engine).problems
    assert (alone.code, alone.where.file) == ("SPARK002", "pipelines/p0.yaml")


@pytest.mark.parametrize(
    ("sink", "source", "sql", "told"),
    [
        ("type: files, path: out/bronze, format: parquet", PARQUET % "infer", "SELECT line FROM bronze", []),
        (
            "type: files, path: out/bronze, format: parquet, partition_by: [size]",
            PARQUET % "line STRING",
            "SELECT line, size FROM bronze",
            [],
        ),
        (
            "type: files, path: out/bronze, format: parquet",
            PARQUET % "'line STRING, size STRING, at DATE'",
            "SELECT line FROM bronze",
            ["`size`", "`at`"],
        ),
        (
            "type: kafka, servers: 'localhost:1', topic: lines",
            "type: kafka, servers: 'localhost:1', topics: [lines], starting: earliest,"
            " format: {type: json, schema: 'line STRING, size BOOLEAN'}",
            "SELECT line FROM bronze",
            ["`size`"],
        ),
        ("type: iceberg, table: lake.up.bronze", "type: iceberg, table: lake.up.bronze", "SELECT line FROM bronze", []),
        (
            "type: delta, path: out/bronze, table_properties: {delta.enableChangeDataFeed: true}",
            "type: delta, path: out/bronze, change_feed: true",
            "SELECT line, _change_type FROM bronze",
            [],
        ),
        (DELTA, f"{DELTA}, read: static", "SELECT b.line FROM more JOIN bronze b ON more.value = b.line", []),
    ],
)
def test_a_reader_is_judged_by_the_columns_to_come(project_at, start_engine, sink, source, sql, told):
    down = silver(sql, source)
    if "static" in source:
        down = down.replace("sources: {", "sources: {more: {type: files, path: in, format: text}, ")
    root = project_at(
        bronze(sink=sink),
        down,
        files=LINES,
        settings="name: test\ncatalogs: {lake: {type: iceberg, warehouse: lake}}\n",
    )
    problems = check(root, (), None, start_engine, offline=True).problems
    assert codes(problems) == ["CHAIN005"] * len(told)
    for problem, words in zip(problems, told, strict=True):
        assert words in problem.message
        assert "bronze_out` of `bronze` (pipelines/p0.yaml:4:9)" in problem.message
    assert check(root, (), None, None).problems == ()  # without Spark
    assert not (root / "out").exists()


def test_a_run_without_its_upstream_says_how_to_run_both(project_at, run_once):
    result = run_once(project_at(bronze(), silver(), files=LINES), "silver")
    assert (codes(result.problems), result.started) == (["CHAIN004"], False)
    assert "`penstock run +silver`" in result.problems[0].fix


def test_new_columns_of_the_upstream_are_known_to_the_downstream_and_arrive(project_at, run_once, start_engine, spark):
    root = project_at(bronze("SELECT value AS line FROM lines"), silver(), files=LINES)
    assert run_once(root).ok
    widened = bronze(sink=f"{DELTA}, merge_schema: true")
    (root / "pipelines/p0.yaml").write_text(widened)
    (root / "pipelines/p1.yaml").write_text(
        silver("SELECT upper(line) AS line, size FROM bronze").replace("out/silver", "out/silver, merge_schema: true")
    )
    assert check(root, (), None, start_engine).problems == ()
    (root / "in/b.txt").write_text("three\n")
    result = run_once(root, "+silver")
    assert result.ok, result.problems
    assert [view.restarts for view in result.queries] == [0, 0]
    assert sorted(rows(spark, root), key=str) == [("ONE", None), ("THREE", 5), ("TWO", None)]


def test_behind_a_query_that_failed_others_are_skipped_and_the_rest_runs(project_at, run_once, spark):
    failing = bronze("SELECT CAST(value AS INT) AS line FROM lines")
    apart = bronze(sink="type: delta, path: out/apart").replace("bronze", "apart")
    gold = silver(source="type: delta, path: out/silver").replace("silver", "gold")
    gold = gold.replace("path: out/gold}", "path: out/silver}", 1)
    root = project_at(failing, silver(), gold, apart, files=LINES)
    result = run_once(root)
    assert not result.ok
    assert result.started
    assert states(result) == {"bronze.rows": "failed", "apart.rows": "done"}
    assert codes(result.problems)[1:] == ["RUN005", "RUN005"]
    assert all("`bronze.rows`, which feeds it, has failed" in one.message for one in result.problems[1:])
    (root / "pipelines/p0.yaml").write_text(failing.replace("CAST", "TRY_CAST"))
    again = run_once(root)
    assert states(again) == dict.fromkeys(("bronze.rows", "apart.rows", "silver.loud", "gold.loud"), "done")
    assert rows(spark, root, "gold") == [(None,), (None,)]


def test_one_query_of_a_pipeline_runs_alone(project_at, run_once):
    both = bronze().replace("sinks: {", "sinks: {raw: {of: lines, type: delta, path: out/raw}, ")
    root = project_at(both, files=LINES)
    assert states(run_once(root, "bronze.lines")) == {"bronze.lines": "done"}
    assert (root / "out/raw").exists()
    assert not (root / "out/bronze").exists()
    assert set(states(run_once(root))) == {"bronze.lines", "bronze.rows"}


def schema(ddl: str) -> StructType:
    return StructType.fromDDL(ddl)


@pytest.mark.parametrize(
    ("written", "expected", "form", "found"),
    [
        ("a INT, b STRING", "b STRING", "json", []),
        ("a INT", "a BIGINT, c INT", "json", ["c"]),
        ("a DOUBLE", "a INT", "json", ["a"]),
        ("a TIMESTAMP, d DATE", "a STRING, d TIMESTAMP", "json", []),
        ("a STRING", "a DOUBLE", "json", ["a"]),
        ("s STRUCT<x: INT>", "s STRUCT<x: INT, y: INT>", "json", ["s.y"]),
        ("s STRUCT<x: INT>", "s MAP<STRING, INT>", "json", []),
        ("A INT", "a INT", "json", ["a"]),
        ("A INT", "a INT", "columnar", []),
        ("a INT", "a BIGINT", "columnar", []),
        ("a BIGINT", "a INT", "columnar", ["a"]),
        ("a STRING", "a DATE", "columnar", ["a"]),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<x: STRING>>", "columnar", ["a.x"]),
    ],
)
def test_which_declared_columns_do_not_fit(spark, written, expected, form, found):
    assert [name for name, _ in misfits(schema(written), schema(expected), form)] == found


def test_a_query_that_reads_its_own_output_needs_the_table_first(project_at, start_engine):
    own = silver(
        "SELECT m.value AS line FROM more m LEFT ANTI JOIN bronze b ON m.value = b.line", f"{DELTA}, read: static"
    )
    own = own.replace("sources: {", "sources: {more: {type: files, path: in, format: text}, ")
    root = project_at(own.replace("out/silver", "out/bronze"), files=LINES)
    assert codes(check(root, (), None, start_engine).problems) == ["DELTA001"]
