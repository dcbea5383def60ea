"""From what is written to what Spark gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.engine import resolve
from penstock.notation.references import MASK
from penstock.pipeline import project
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import Project
from penstock.pipeline.yaml_text import parse
from penstock.problems import Problem, UserError
from penstock.spec import given_options

Read = Callable[[str], Pipeline]

ROOT = Path("/srv/shop")
BARE = project.bare(ROOT)
TEXT = """\
pipeline: p
sources:
  wire: {type: socket, host: "${HOST}", port: "${PORT}", include_timestamp: "${STAMP:-false}"}
  lines:
    type: files
    path: ${IN:-in}
    format: {type: csv, schema: "${SCHEMA:-x INT}", header: "${HEADER:-true}", sep: "${SEP:-;}"}
    max_file_age: "${AGE:-1 day}"
    source_archive_dir: done
    clean_source: archive
steps:
  some: {sql: "SELECT * FROM lines WHERE city = '${CITY:-Oslo}' AND note = '$${x}'"}
sinks:
  out: {of: wire, type: files, path: "s3a://bucket/${HOST}", format: text, max_records_per_file: "${ROWS:-10}"}
  all_lines: {of: some, type: console, num_rows: "${ROWS:-10}", truncate: "${CUT:-true}"}
queries:
  some: {spark: {spark.sql.shuffle.partitions: "${PARTITIONS:-3}"}, trigger: 10 seconds}
"""
SET = {"HOST": "localhost", "PORT": "9999"}


def resolved(read: Read, environ: dict[str, str], text: str = TEXT, shop: Project = BARE) -> Pipeline:
    return resolve.pipeline(read(text), shop, environ)


def problems_of(read: Read, environ: dict[str, str], text: str = TEXT, shop: Project = BARE) -> tuple[Problem, ...]:
    with pytest.raises(UserError) as raised:
        resolved(read, environ, text, shop)
    return raised.value.problems


def test_references_become_values_of_the_right_type(read: Read) -> None:
    pipeline = resolved(read, SET)
    wire, lines = (source.spec.model_dump() for source in pipeline.sources)
    assert (wire["host"], wire["port"], wire["include_timestamp"]) == ("localhost", 9999, False)
    assert (lines["format"]["header"], lines["format"]["sep"], lines["max_file_age"]) == (True, ";", "1 day")
    out, screen = (sink.spec.model_dump() for sink in pipeline.sinks)
    assert (out["max_records_per_file"], screen["num_rows"], screen["truncate"]) == (10, 10, True)
    assert pipeline.queries[1].settings.spark == {"spark.sql.shuffle.partitions": "3"}
    assert str(pipeline.queries[1].trigger) == "10 seconds"


def test_sql_is_resolved_and_an_escaped_reference_is_text(read: Read) -> None:
    sql = resolved(read, SET | {"CITY": "Bergen"}).steps[0].spec.given()["sql"]
    assert sql == "SELECT * FROM lines WHERE city = 'Bergen' AND note = '${x}'"


def test_paths_become_absolute_and_urls_stay(read: Read) -> None:
    pipeline = resolved(read, SET)
    lines = pipeline.sources[1].spec.model_dump()
    assert (lines["path"], lines["source_archive_dir"]) == ("/srv/shop/in", "/srv/shop/done")
    assert pipeline.sinks[0].spec.given()["path"] == "s3a://bucket/localhost"
    elsewhere = resolved(read, SET | {"IN": "/data/in"})
    assert elsewhere.sources[1].spec.given()["path"] == "/data/in"


def test_what_was_written_stays_as_it_was(read: Read) -> None:
    written = read(TEXT)
    resolve.pipeline(written, BARE, SET)
    assert written == read(TEXT)
    assert written.sources[0].spec.given()["port"] == "${PORT}"


def test_only_what_was_given_is_handed_on(read: Read) -> None:
    assert given_options(resolved(read, SET).sources[0].spec) == {
        "host": "localhost",
        "port": "9999",
        "includeTimestamp": "false",
    }


@pytest.mark.parametrize(
    ("environ", "code", "place", "said"),
    [
        pytest.param({"HOST": "x"}, "VARIABLE001", "3:48", "`PORT` is not set", id="unset"),
        pytest.param({"HOST": "x", "PORT": ""}, "VARIABLE001", "3:48", "`PORT` is not set", id="empty"),
        pytest.param({**SET, "PORT": "many"}, "VARIABLE002", "3:48", "`port`", id="no number"),
        pytest.param({**SET, "PORT": "70000"}, "VARIABLE002", "3:48", "`port`", id="out of bounds"),
        pytest.param({**SET, "PORT": "1.5"}, "VARIABLE002", "3:48", "`port`", id="half a port"),
        pytest.param({**SET, "STAMP": "perhaps"}, "VARIABLE002", "3:78", "`include_timestamp`", id="no boolean"),
        pytest.param({**SET, "AGE": "old"}, "VARIABLE002", "8:20", "`max_file_age`", id="no duration"),
        pytest.param({**SET, "ROWS": "0"}, "VARIABLE002", None, "", id="twice wrong"),
    ],
)
def test_a_wrong_value_is_told_where_its_reference_stands(
    read: Read, environ: dict[str, str], code: str, place: str | None, said: str
) -> None:
    problems = problems_of(read, environ)
    assert {problem.code for problem in problems} == {code}
    if place is None:
        assert len(problems) == 2
        return
    (problem,) = problems
    assert said in problem.message
    assert problem.fix
    assert str(problem.where) == f"pipeline.yaml:{place}"


def test_one_run_tells_every_node_that_cannot_be_resolved(read: Read) -> None:
    problems = problems_of(read, {})
    assert [str(problem.where) for problem in problems] == ["pipeline.yaml:3:31", "pipeline.yaml:14:39"]


def test_a_wrong_value_inside_a_format_is_told_at_its_node_at_least(read: Read) -> None:
    (problem,) = problems_of(read, {**SET, "HEADER": "perhaps"})
    assert problem.code == "VARIABLE002"
    assert problem.where is not None
    assert problem.where.line in (4, 7)


SHOP = """\
name: shop
storage: ${STORAGE:-storage}
spark: {spark.master: "${MASTER:-local[2]}", spark.ui.enabled: false}
variables: {PORT: 1234, FLAG: true, HOST: from-project, DB_PASSWORD: hunter2hunter2}
secrets: [CITY]
connections:
  broker: {type: kafka, servers: "${SERVERS}", sasl_mechanism: PLAIN, username: me, password: "${KAFKA_PASSWORD}"}
catalogs:
  lake: {type: iceberg, warehouse: "${LAKE:-lake}", options: {x: "${X:-1}"}}
environments:
  prod: {storage: "${PROD_STORAGE}"}
"""


def shop(environment: str | None = None) -> Project:
    return project.from_document(parse(SHOP, "penstock.yaml"), ROOT, environment)


def test_the_process_wins_over_the_projects_variables(read: Read) -> None:
    assert resolve.environment(shop(), {"PORT": "1"}) == {
        "PORT": "1",
        "FLAG": "true",
        "HOST": "from-project",
        "DB_PASSWORD": "hunter2hunter2",
    }
    pipeline = resolved(read, {"HOST": "from-process"}, shop=shop())
    wire: Any = pipeline.sources[0].spec
    assert (wire.host, wire.port) == ("from-process", 1234)


def test_settings_of_the_process_come_from_the_project_and_its_catalogs() -> None:
    settings = resolve.project_settings(shop(), {"MASTER": "local[1]"})
    assert settings["spark.master"] == "local[1]"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.sql.catalog.lake"] == "org.apache.iceberg.spark.SparkCatalog"
    assert settings["spark.sql.catalog.lake.warehouse"] == "/srv/shop/lake"
    assert settings["spark.sql.catalog.lake.x"] == "1"


def test_the_storage_is_absolute_and_an_unset_one_is_told_in_its_environment() -> None:
    assert resolve.storage_root(shop(), {}) == "/srv/shop/storage"
    assert resolve.storage_root(shop(), {"STORAGE": "s3a://bucket/x"}) == "s3a://bucket/x"
    assert resolve.storage_root(shop("prod"), {"PROD_STORAGE": "/prod"}) == "/prod"
    with pytest.raises(UserError) as raised:
        resolve.storage_root(shop("prod"), {})
    (problem,) = raised.value.problems
    assert (problem.code, str(problem.where)) == ("VARIABLE001", "penstock.yaml:11:20")


KAFKA = """\
pipeline: p
sources:
  events:
    type: spark
    format: kafka
    connection: broker
    spark_options: {subscribe: events, kafka.security.protocol: SASL_SSL}
sinks: {o: {of: events, type: console}}
"""


def test_a_connection_gives_its_options_and_the_sources_own_win(read: Read) -> None:
    environ = {"SERVERS": "k:9092", "KAFKA_PASSWORD": 'pa"ss'}
    options = given_options(resolved(read, environ, KAFKA, shop()).sources[0].spec)
    assert options["kafka.bootstrap.servers"] == "k:9092"
    assert options["subscribe"] == "events"
    assert options["kafka.security.protocol"] == "SASL_SSL"
    login = options["kafka.sasl.jaas.config"]
    assert 'username="me" password="pa\\"ss";' in login
    assert MASK in resolve.mask(shop(), environ)(login)


def test_a_connection_that_cannot_be_resolved_is_told_at_its_own_place(read: Read) -> None:
    (problem,) = problems_of(read, {"KAFKA_PASSWORD": "x"}, KAFKA, shop())
    assert (problem.code, str(problem.where)) == ("VARIABLE001", "penstock.yaml:7:35")


def test_secrets_of_process_and_project_are_hidden() -> None:
    mask = resolve.mask(shop(), {"CITY": "Oslo", "MY_TOKEN": "tok-123", "HOST": "shown"})
    assert mask("Oslo tok-123 hunter2hunter2 shown") == f"{MASK} {MASK} {MASK} shown"
