"""What one pipeline writes and another reads joins them: found from the specs, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.checks.every_rule import judge
from penstock.checks.rule import Subject
from penstock.graph.project_graph import ProjectGraph, graph_of
from penstock.lakes.catalogs import IcebergCatalog
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project, bare, from_document
from penstock.pipeline.yaml_text import parse
from penstock.problems import Problem

Read = Callable[[str], Pipeline]
Joined = Callable[[str, str], bool]
ENVIRON = {"OUT": "out", "SERVERS": "b1:9092,b2:9092"}


def writer(sink: str, name: str = "up") -> str:
    return f"pipeline: {name}\nsources: {{ticks: {{type: rate}}}}\nsinks: {{out: {{of: ticks, {sink}}}}}\n"


def reader(source: str, name: str = "down") -> str:
    return f"pipeline: {name}\nsources: {{rows: {{{source}}}}}\nsinks: {{seen: {{of: rows, type: console}}}}\n"


@pytest.fixture
def joined(tmp_path: Path, read: Read) -> Joined:
    project = from_document(
        parse(
            "name: shop\nconnections: {kafka: {type: kafka, servers: 'b2:9092'},"
            " db: {type: postgres, url: 'postgresql://h/shop'}}\ncatalogs: {lake: {type: iceberg, warehouse: lake}}\n",
            "penstock.yaml",
        ),
        tmp_path,
    )

    def judge_it(sink: str, source: str) -> bool:
        sink, source = (text.replace("ROOT", str(tmp_path)) for text in (sink, source))
        found = graph_of([read(writer(sink)), read(reader(source))], project, ENVIRON)
        assert {(joint.writer, joint.reader) for joint in found.joints} <= {(("up", "ticks"), ("down", "rows"))}
        return bool(found.joints)

    return judge_it


TEXT = "format: text"
KAFKA = "type: kafka, format: text"
PG = "type: postgres"


@pytest.mark.parametrize(
    ("sink", "source", "are_joined"),
    [
        ("type: delta, path: out/a", "type: delta, path: out/a", True),
        ("type: delta, path: out/a", "type: delta, path: out/a, read: static", True),
        ("type: delta, path: out/a/", "type: delta, path: ./out//a", True),
        ("type: delta, path: out/a", "type: delta, path: ROOT/out/a/", True),
        ("type: delta, path: out/a", "type: delta, path: 'file://ROOT/out/a'", True),
        ("type: delta, path: '${OUT}/a'", "type: delta, path: out/a", True),
        ("type: delta, path: '${OUT:-x}/a'", "type: delta, path: '${OUT}/a'", True),
        ("type: delta, path: '${UNSET}/a'", "type: delta, path: '${UNSET}/a'", True),
        ("type: delta, path: '${UNSET}/a'", "type: delta, path: '${OTHER}/a'", False),
        ("type: delta, path: 's3a://b/a/'", "type: delta, path: 's3a://b/a'", True),
        ("type: delta, path: 's3a://b/a'", "type: delta, path: 's3a://c/a'", False),
        ("type: delta, path: out/a", "type: delta, path: out/ab", False),
        ("type: delta, path: out/a", "type: delta, path: out", False),
        ("type: delta, path: out", "type: delta, path: out/a", False),
        ("type: delta, path: out/a", "type: spark, format: delta, path: out/a", True),
        ("type: delta, table: shop.a", "type: delta, table: shop.A", True),
        ("type: delta, table: a", "type: table, table: spark_catalog.default.a", True),
        ("type: delta, table: shop.a", "type: delta, table: other.a", False),
        ("type: table, table: shop.a, path: out/a, format: delta", "type: delta, path: out/a", True),
        ("type: iceberg, table: lake.shop.a", "type: iceberg, table: lake.`shop`.a", True),
        ("type: iceberg, table: lake.shop.a", "type: table, table: lake.shop.a", True),
        ("type: iceberg, table: lake.shop.a", "type: iceberg, table: other.shop.a", False),
        (f"type: files, path: out/a, {TEXT}", f"type: files, path: out/a, {TEXT}", True),
        (f"type: files, path: out/a, {TEXT}", f"type: files, path: out/*, {TEXT}", True),
        (f"type: files, path: out/a, {TEXT}", f"type: files, path: out, recursive_file_lookup: true, {TEXT}", True),
        (f"type: files, path: out/a, {TEXT}", f"type: files, path: out, {TEXT}", False),
        (f"type: files, path: out/day=1, {TEXT}", f"type: files, path: out, {TEXT}", True),
        (f"type: files, path: out/a, {TEXT}, partition_by: [d]", f"type: files, path: 'out/a/d=*', {TEXT}", True),
        (f"type: files, path: out/a, {TEXT}", f"type: files, path: out/a/other, {TEXT}", False),
        (f"type: files, path: out/a, {TEXT}", f"type: files, path: out/b, {TEXT}", False),
        (f"{KAFKA}, servers: 'b1:9092', topic: t", f"{KAFKA}, servers: 'b1:9092', topics: [s, t]", True),
        (f"{KAFKA}, servers: 'b1:9092', topic: t", f"{KAFKA}, servers: '${{SERVERS}}', topics: [t]", True),
        (f"{KAFKA}, connection: kafka, topic: t", f"{KAFKA}, servers: '${{SERVERS}}', topics: [t]", True),
        (f"{KAFKA}, servers: '${{NO}}', topic: t", f"{KAFKA}, servers: '${{NO}}', topics: [t]", True),
        (f"{KAFKA}, servers: 'b1:9092', topic: t", f"{KAFKA}, servers: 'b3:9092', topics: [t]", False),
        (f"{KAFKA}, servers: 'b1:9092', topic: t1", f"{KAFKA}, servers: 'b1:9092', topic_pattern: 't.'", True),
        (f"{KAFKA}, servers: 'b1:9092', topic: xt1", f"{KAFKA}, servers: 'b1:9092', topic_pattern: 't.'", False),
        (f"{KAFKA}, servers: 'b1:9092', topic: t", f"{KAFKA}, servers: 'b1:9092', topic_pattern: '(t'", False),
        (f"{KAFKA}, servers: 'b1:9092', topic: t", f"{KAFKA}, servers: 'b1:9092', assign: {{t: [0]}}", True),
        (f"{KAFKA}, servers: 'localhost:9092', topic: t", f"{KAFKA}, servers: '127.0.0.1:9092', topics: [t]", True),
        (f"{PG}, connection: db, table: a", f"{PG}, url: 'jdbc:postgresql://u:p@h:5432/shop', table: public.a", True),
        (f"{PG}, connection: db, table: a", f"{PG}, connection: db, table: s.a", False),
        (f"{PG}, connection: db, table: a", f"{PG}, url: 'postgresql://h/other', table: a", False),
        ("type: console", "type: rate", False),
    ],
)  # fmt: skip
def test_a_sink_and_a_source_are_joined_where_they_name_one_place(joined, sink, source, are_joined):
    assert joined(sink, source) is are_joined


def chain(read: Read, root: Path, *edges: str, static: tuple[str, ...] = ()) -> ProjectGraph:
    """`a>b` lets pipeline b read what a writes; a pipeline that reads nothing ticks."""
    names = list(dict.fromkeys(name for edge in edges for name in edge.split(">")))
    pipelines = []
    for name in names:
        inputs = [edge.split(">")[0] for edge in edges if edge.endswith(f">{name}")]
        sources = ", ".join(
            f"from_{one}: {{type: delta, path: out/{one}{', read: static' if f'{one}>{name}' in static else ''}}}"
            for one in inputs
        )
        unions = " UNION ALL ".join(f"SELECT value FROM {one}" for one in ["ticks", *(f"from_{i}" for i in inputs)])
        pipelines.append(
            read(
                f"pipeline: {name}\nsources: {{ticks: {{type: rate}}{', ' if sources else ''}{sources}}}\n"
                f"steps: {{all_rows: {{sql: {unions}}}}}\n"
                f"sinks: {{out: {{of: all_rows, type: delta, path: out/{name}}}}}\n"
            )
        )
    return graph_of(pipelines, bare(root), {})


def order(found: ProjectGraph) -> list[str]:
    return [" ".join(pipeline for pipeline, _ in stage) for stage in found.stages(found.queries)]


@pytest.mark.parametrize(
    ("edges", "static", "stages"),
    [
        (("a>b", "b>c"), (), ["a", "b", "c"]),
        (("c>b", "b>a"), (), ["c", "b", "a"]),
        (("a>c", "b>c", "c>d", "a>d"), (), ["a b", "c", "d"]),
        (("a>b", "b>a"), (), ["a b"]),
        (("s>a", "a>b", "b>a", "b>c"), (), ["s", "a b", "c"]),
        (("a>b", "b>a"), ("b>a",), ["a", "b"]),
        (("a>a",), ("a>a",), ["a"]),
        (("a>b", "b>c", "c>a"), ("c>a",), ["a", "b", "c"]),
    ],
)
def test_stages_follow_the_rows_and_what_goes_round_runs_together(read, tmp_path, edges, static, stages):
    assert order(chain(read, tmp_path, *edges, static=static)) == stages


def test_nothing_joined_is_one_stage(read, tmp_path):
    found = graph_of([read(writer("type: console", name)) for name in ("b", "a")], bare(tmp_path), {})
    assert order(found) == ["b a"]
    assert found.joints == found.loops() == ()


def told(found: ProjectGraph, root: Path, pipeline: str, project: Project | None = None) -> list[Problem]:
    own = found.by_name[pipeline]
    others = tuple(one for one in found.pipelines if one is not own)
    return [one for one in judge(Subject(project or bare(root), own, others)) if one.code.startswith(("CHAIN", "SINK"))]


def test_a_circle_is_told_with_both_ends_and_a_static_read_closes_none(read, tmp_path):
    (problem,) = told(chain(read, tmp_path, "a>b", "b>a"), tmp_path, "a")
    assert (problem.code, problem.severity) == ("CHAIN001", "error")
    for words in ("`a` writes `out/a` (pipeline.yaml:", "`b` writes `out/b` (pipeline.yaml:", "`a` reads it"):
        assert words in problem.message
    assert problem.where is not None
    assert told(chain(read, tmp_path, "a>b", "b>a", static=("b>a",)), tmp_path, "a") == []
    assert told(chain(read, tmp_path, "s>a", "a>b", "b>a"), tmp_path, "s") == []


def test_a_circle_through_kafka_is_a_warning(read, tmp_path):
    kafka = "type: kafka, format: text, servers: 'b:1'"
    retried = reader(f"{kafka}, topics: [orders, retry], starting: earliest", "orders").replace(
        "type: console", f"{kafka}, topic: failed"
    )
    retry = reader(f"{kafka}, topics: [failed], starting: earliest", "retries").replace(
        "type: console", f"{kafka}, topic: retry"
    )
    found = graph_of([read(retried), read(retry)], bare(tmp_path), {})
    (problem,) = told(found, tmp_path, "orders")
    assert (problem.code, problem.severity) == ("CHAIN002", "warning")
    assert order(found) == ["orders retries"]


@pytest.mark.parametrize(
    ("sink", "codes"),
    [
        ("type: delta, table: shop.a", ["CHAIN003"]),
        ("type: iceberg, table: lake.shop.a", ["CHAIN003"]),
        ("type: delta, path: out/a", ["SINK003"]),
        ("type: files, path: out/a, format: json", ["SINK003"]),
        ("type: kafka, servers: 'b:1', topic: t", []),
        ("type: postgres, url: 'postgresql://h/d', table: t", []),
        ("type: console", []),
    ],
)
def test_two_writers_of_one_place(read, tmp_path, sink, codes):
    project = Project("shop", tmp_path, "storage", catalogs={"lake": IcebergCatalog(warehouse="lake")})
    pipelines = [read(writer(sink, name)) for name in ("one", "two")]
    found = graph_of(pipelines, project, {})
    problems = [one for one in told(found, tmp_path, "one", project) if one.code != "SINK004"]
    assert [problem.code for problem in problems] == codes
    for problem in problems:
        assert "`two`" in problem.message
        assert "pipeline.yaml:3:9" in problem.message
