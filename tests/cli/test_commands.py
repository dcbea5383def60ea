"""The commands as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from penstock.cli.main import COMMANDS

PIPELINE = """\
pipeline: shop
sources: {lines: {type: files, path: data/in, format: text}}
steps: {loud: {sql: SELECT upper(value) AS value FROM lines}}
sinks: {out: {of: loud, type: files, path: data/out, format: text}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (
        ("penstock.yaml", "name: shop\n"),
        ("pipelines/shop.yaml", PIPELINE),
        ("data/in/1.txt", "a\nb\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_json_and_explains_itself(command, penstock):
    group = {
        "dev": ["kafka"],
        "dead-letters": ["list", "show", "export", "replay"],
        "checkpoint": ["list", "show", "verify", "reset"],
    }.get(command)
    for words in [(command, word) for word in group] if group else [(command,)]:
        ended = penstock(*words, "--help")
        assert ended.code == 0
        assert "--json" in ended.out


def test_wrong_usage_is_exit_code_2(penstock, tmp_path):
    assert penstock("check", "--no-such-option").code == 2
    assert penstock("no-such-command").code == 2
    assert penstock("run", "--for", "soon", at=tmp_path).code == 2


def test_outside_of_a_project_every_command_says_so(penstock, tmp_path):
    for command in (("check",), ("check", "--fast"), ("run",), ("show", "x")):
        ended = penstock(*command, "--json", at=tmp_path)
        assert (ended.code, ended.codes) == (1, ["PROJECT001"])


def test_a_fast_check_imports_no_pyspark(project):
    import subprocess
    import sys

    code = """if True:
        import sys
        from penstock.cli.main import main
        try:
            main()
        except SystemExit as end:
            assert not end.code
        assert "pyspark" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code, "check", "--fast"], cwd=project, check=True, capture_output=True)


def test_a_problem_is_shown_with_its_line_a_caret_and_a_count(penstock, project):
    path = project / "pipelines/shop.yaml"
    path.write_text(PIPELINE.replace("FROM lines", "FROM liens"))
    ended = penstock("check", "--fast", at=project)
    assert ended.code == 1
    heading, *lines = ended.out.splitlines()
    assert heading.startswith("shop ──")
    assert "did you mean `lines`?" in lines[0]
    assert lines[1].strip() == "pipelines/shop.yaml:3:55"
    assert lines[3].index("^") == lines[2].index("liens")
    assert lines[-1] == "1 error"


def test_no_colour_where_none_is_wanted(penstock, project, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in penstock("check", "--fast", at=project).out


def test_explain_knows_every_code_that_the_source_raises(penstock):
    source = Path(__file__).parents[2] / "src" / "penstock"
    raised = {code for file in source.rglob("*.py") for code in re.findall(r'"([A-Z]+\d{3})"', file.read_text())}
    explained = {explanation["code"] for explanation in penstock("explain", "--json").json}
    assert raised == explained


def test_explain_shows_why_with_both_examples(penstock):
    ended = penstock("explain", "files003")
    assert ended.code == 0
    assert "Wrong" in ended.out
    assert "Right" in ended.out
    assert penstock("explain", "NOPE999").code == 1


def test_doctor_finds_this_machine_ready(penstock, project):
    result = penstock("doctor", "--json", at=project)
    assert result.code == 0
    assert {finding["name"] for finding in result.json["findings"]} >= {"Python", "Java", "Spark", "Disk", "Connectors"}


def test_doctor_says_what_is_missing(penstock, project, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    result = penstock("doctor", "--json", at=project)
    assert result.code == 1
    java = next(finding for finding in result.json["findings"] if finding["name"] == "Java")
    assert java["level"] == "error"
    assert "install Java 17" in java["fix"]


def test_init_makes_a_project_and_overwrites_nothing(penstock, tmp_path):
    ended = penstock("init", tmp_path / "x", "--json")
    assert ended.code == 0
    assert "pipelines/orders.yaml" in ended.json["files"]
    again = penstock("init", tmp_path / "x", "--json")
    assert (again.code, again.codes) == (1, ["PROJECT006"])
    assert penstock("check", "--fast", at=tmp_path / "x").code == 0


def test_the_schemas_of_a_new_project_accept_its_files(penstock, tmp_path):
    penstock("init", tmp_path / "x")
    for name, file in (("pipeline", "pipelines/orders.yaml"), ("project", "penstock.yaml")):
        schema = json.loads((tmp_path / "x" / ".penstock" / f"{name}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        data = yaml.safe_load((tmp_path / "x" / file).read_text())
        jsonschema.validate(data, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data | {"no_such_key": 1}, schema)


@pytest.mark.spark
def test_init_check_run_as_it_is(penstock, tmp_path, on_shared_spark, spark):
    penstock("init", tmp_path / "x")
    assert penstock("check", at=tmp_path / "x").code == 0
    ran = penstock("run", "--once", "--json", at=tmp_path / "x")
    assert ran.code == 0
    assert {query["state"] for query in ran.json["queries"]} == {"done"}
    rows = spark.read.parquet(str(tmp_path / "x/out/revenue")).count()
    assert rows == sum(query["rows_out"] for query in ran.json["queries"] if query["query"] == "revenue") > 0
    again = penstock("run", "--once", "--json", at=tmp_path / "x")
    assert all(query["rows_in"] == 0 for query in again.json["queries"])
    assert spark.read.parquet(str(tmp_path / "x/out/revenue")).count() == rows


@pytest.mark.spark
def test_check_shows_each_promise_with_its_reason(penstock, project, on_shared_spark):
    result = penstock("check", "--json", at=project).json
    assert result["queries"][0]["promise"] == "exactly-once"
    assert "log" in result["queries"][0]["reason"]


@pytest.mark.spark
def test_a_run_without_a_terminal_prints_a_line_per_batch(penstock, project, on_shared_spark):
    ended = penstock("run", "--once", at=project)
    assert ended.code == 0
    assert re.search(r"\d shop\.loud started · exactly-once\n", ended.out)
    assert re.search(r"shop\.loud batch 0 · 2 rows in · 2 out", ended.out)
    assert "✓ shop.loud done: 1 batch · 2 rows in · 2 out · exactly-once" in ended.out


@pytest.mark.spark
def test_each_event_is_a_line_of_json_and_the_result_is_the_last(penstock, project, on_shared_spark):
    ended = penstock("run", "--once", "--events", at=project)
    *lines, last = map(json.loads, ended.out.splitlines())
    news = [line for line in lines if line["event"] not in ("working", "idle", "backlog_taken", "lag_seen")]
    assert [line["event"] for line in news] == ["query_started", "batch_done", "stopped"]
    assert {(line["pipeline"], line["query"]) for line in lines} == {("shop", "loud")}
    assert news[1]["rows_in"] == 2
    assert news[2]["state"] == "done"
    assert (last["event"], last["ok"], last["queries"][0]["rows_out"]) == ("run_ended", True, 2)


@pytest.mark.spark
def test_a_console_sink_prints_through_the_view(penstock, project, on_shared_spark):
    path = project / "pipelines/shop.yaml"
    path.write_text(PIPELINE.replace("type: files, path: data/out, format: text}}\n", "type: console}}\n"))
    ended = penstock("run", "--once", at=project)
    assert ended.code == 0
    assert "|    A|" in ended.out
    silent = penstock("run", "--once", "--json", at=project)
    assert silent.json["ok"]


@pytest.mark.covers("quick.same-as-batch")
@pytest.mark.spark
def test_show_gives_rows_and_schema_of_any_step_and_writes_nothing(penstock, project, on_shared_spark):
    shown = penstock("show", "loud", "--limit", "1", "--json", at=project).json
    assert shown["schema"] == [{"name": "value", "type": "string"}]
    assert shown["rows"] == [{"value": "A"}]
    assert not (project / "data/out").exists()
    assert not (project / "storage").exists()
    source = penstock("show", "lines", at=project)
    assert "value" in source.out
    unknown = penstock("show", "lout", "--json", at=project)
    assert (unknown.code, unknown.codes) == (1, ["PROJECT007"])
    assert "did you mean `loud`" in unknown.json["problems"][0]["message"]


@pytest.mark.spark
def test_show_streams_the_sample_where_spark_must(penstock, tmp_path, on_shared_spark):
    penstock("init", tmp_path / "x")
    shown = penstock("show", "unique_orders", "--limit", "3", "--json", at=tmp_path / "x").json
    assert len(shown["rows"]) == 3
    assert shown["sampled"]


@pytest.mark.spark
def test_show_waits_for_rows_of_a_source_that_is_only_a_stream(penstock, project, on_shared_spark):
    path = project / "pipelines/shop.yaml"
    path.write_text(
        "pipeline: p\nsources: {ticks: {type: rate, rows_per_second: 50}}\nsinks: {o: {of: ticks, type: console}}\n"
    )
    assert penstock("show", "ticks", "--limit", "2", "--json", at=project).json["rows"]


@pytest.mark.spark
def test_show_tells_a_value_that_cannot_be_cast_and_shows_data_as_it_is(penstock, project, on_shared_spark):
    (project / "data/in/1.txt").write_text("[red] not markup [/x]\n")
    assert "[red] not markup [/x]" in penstock("show", "lines", at=project).out
    (project / "pipelines/shop.yaml").write_text(PIPELINE.replace("upper(value)", "CAST(value AS INT)"))
    failed = penstock("show", "loud", "--json", at=project)
    assert (failed.code, failed.codes) == (1, ["SPARK002"])


def test_a_folder_that_is_not_there_is_told(penstock, project):
    ended = penstock("check", "--fast", "--json", "-p", project / "typo")
    assert (ended.code, ended.codes) == (1, ["PROJECT008"])
    assert penstock("doctor", "-p", project / "typo").code == 0


def test_a_mistake_in_one_pipeline_hides_nothing_of_another(penstock, project):
    other = PIPELINE.replace("pipeline: shop", "pipeline: other").replace("FROM lines", "FROM liens")
    (project / "pipelines/other.yaml").write_text(other.replace("data/out", "data/other"))
    (project / "pipelines/shop.yaml").write_text(PIPELINE.replace("path: data/in", "path: data/inn"))
    assert penstock("check", "--fast", "--json", at=project).codes == ["GRAPH001", "FILES007"]
