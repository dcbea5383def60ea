"""`penstock check`: what it prints for people, editors and CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import place

SORTED = """\
pipeline: sorted_ticks
sources: {ticks: {type: rate}}
steps:
  newest: {sql: SELECT * FROM ticks ORDER BY value DESC}
sinks: {out: {of: newest, type: console}}
"""
COUNTS = """\
pipeline: counts
sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
steps:
  minutes: {sql: "SELECT window, count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}
sinks: {out: {of: minutes, type: console}}
"""
PYTHON = """\
pipeline: python_steps
sources:
  ticks: {type: rate}
  known: {type: files, path: known, format: {type: csv, schema: value BIGINT}, read: static}
steps: {odd: {python: steps:odd}}
sinks: {out: {of: odd, type: console}}
"""
STEPS = """\
def odd(ticks, known):
    ticks.show()
    wanted = [row.value for row in known.collect()]
    counted = ticks.groupBy("value").count()
    return ticks.where("value % 2 = 1").limit(ticks.where("value > 3").count())
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place(tmp_path / "penstock.yaml", "name: shop\n")
    return tmp_path


def test_problems_stand_under_the_name_of_their_pipeline(penstock, project):
    place(project / "pipelines/one.yaml", SORTED)
    place(project / "pipelines/two.yaml", SORTED.replace("sorted_ticks", "other").replace("ORDER BY", "SORT BY"))
    ended = penstock("check", "--fast", at=project)
    assert ended.code == 1
    lines = ended.out.splitlines()
    headings = [line.split(" ")[0] for line in lines if line.endswith("───")]
    assert headings == ["sorted_ticks", "other"]
    assert "  pipelines/one.yaml:4:37" in lines
    assert lines[-1] == "2 errors"


def test_sarif_for_editors_and_ci(penstock, project):
    place(project / "pipelines/one.yaml", SORTED)
    ended = penstock("check", "--fast", "--sarif", "found.sarif", at=project)
    assert ended.code == 1
    (run,) = json.loads((project / "found.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("OPERATION001", "error")
    place_ = result["locations"][0]["physicalLocation"]
    assert place_["artifactLocation"]["uri"] == "pipelines/one.yaml"
    assert place_["region"] == {"startLine": 4, "startColumn": 37}
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "OPERATION001"
    on_screen = penstock("check", "--fast", "--sarif", "-", at=project)
    assert json.loads(on_screen.out)["version"] == "2.1.0"


def test_a_report_that_cannot_be_written_is_told(penstock, project):
    place(project / "pipelines/one.yaml", SORTED)
    ended = penstock("check", "--fast", "--sarif", "no/such/folder.sarif", at=project)
    assert ended.code == 1
    assert "CHECK001" in ended.out + ended.err


def test_a_plan_needs_spark(penstock, project):
    place(project / "pipelines/one.yaml", COUNTS)
    assert penstock("check", "--fast", "--show-plan", at=project).code == 2


def test_explain_names_the_section_of_the_guide(penstock):
    assert "Unsupported Operations" in penstock("explain", "OPERATION001").out


def test_a_step_that_counts_a_stream_is_told_at_its_line(penstock, project):
    place(project / "pipelines/one.yaml", PYTHON)
    place(project / "steps.py", STEPS)
    found = penstock("check", "--fast", "--json", at=project).json["problems"]
    assert [(one["code"], one["where"]["file"], one["where"]["line"]) for one in found] == [
        ("STEP001", "steps.py", 2),
        ("STEP001", "steps.py", 5),
    ]


def test_a_function_that_writes_a_batch_twice_is_told(penstock, project):
    place(
        project / "pipelines/one.yaml",
        "pipeline: own\nsources: {ticks: {type: rate}}\n"
        "sinks: {out: {of: ticks, type: python, each_batch: 'own:store'}}\n",
    )
    place(project / "own.py", "def store(rows, batch):\n    rows.write.parquet('out')\n")
    (problem,) = penstock("check", "--fast", "--json", at=project).json["problems"]
    assert (problem["code"], problem["severity"]) == ("SINK009", "warning")
    place(project / "own.py", "def store(rows, batch):\n    rows.write.parquet(f'out/{batch.number}')\n")
    assert penstock("check", "--fast", "--json", at=project).json["problems"] == []


@pytest.mark.parametrize(
    "written",
    [
        'url: "postgresql://shop:hunter2@db/shop"',
        "url: postgresql://db/shop, username: shop, password: hunter2",
        "url: postgresql://db/shop, username: shop, password: 'hunter2'",
    ],
)
def test_a_secret_in_a_file_is_not_printed(penstock, project, written):
    sink = f"{{of: ticks, type: postgres, table: t, {written}}}"
    text = f"pipeline: open\nsources: {{ticks: {{type: rate}}}}\nsinks:\n  out: {sink}\n"
    place(project / "pipelines/one.yaml", text)
    for how in ((), ("--json",), ("--sarif", "-")):
        ended = penstock("check", "--fast", *how, at=project)
        assert "SECRET001" in ended.out
        assert "hunter2" not in ended.out + ended.err
    # Other problems of the same line show it too.
    place(project / "pipelines/one.yaml", text.replace("table: t", "tabel: t"))
    ended = penstock("check", "--fast", at=project)
    assert "SPEC007" in ended.out
    assert "hunter2" not in ended.out + ended.err


@pytest.mark.spark
@pytest.mark.usefixtures("on_shared_spark")
class TestWithSpark:
    def test_it_shows_the_plan_and_the_state_that_spark_puts_in(self, penstock, project):
        place(project / "pipelines/one.yaml", COUNTS)
        ended = penstock("check", "--show-plan", at=project)
        assert ended.code == 0
        assert "== Physical Plan ==" in ended.out
        assert "with state: StateStoreSave, StateStoreRestore, EventTimeWatermark" in ended.out

    def test_a_secret_in_a_variable_is_no_secret_in_a_file(self, penstock, project, monkeypatch):
        monkeypatch.setenv("PASSWORD", "hunter2")
        text = "sources: {lines: {type: spark, format: rate, spark_options: {api_token: TOKEN}}}\n"
        text = f"pipeline: closed\n{text}sinks: {{out: {{of: lines, type: console}}}}\n"
        place(project / "pipelines/one.yaml", text.replace("TOKEN", "'${PASSWORD}'"))
        assert penstock("check", "--json", at=project).json["problems"] == []
        place(project / "pipelines/one.yaml", text.replace("TOKEN", "hunter2"))
        assert [one["code"] for one in penstock("check", "--json", at=project).json["problems"]] == ["SECRET001"]

    def test_what_spark_refuses_is_told_in_our_words_at_the_users_line(self, penstock, project):
        place(project / "pipelines/one.yaml", SORTED)
        (problem,) = penstock("check", "--json", at=project).json["problems"]
        assert problem["code"] == "OPERATION001"
        assert problem["where"] == {"file": "pipelines/one.yaml", "line": 4, "column": 37}


GONE = """\
pipeline: gone
sources: {orders: {type: kafka, servers: "127.0.0.1:1", topics: [orders], format: text}}
steps: {newest: {sql: SELECT * FROM orders ORDER BY value}}
sinks: {out: {of: newest, type: kafka, servers: "127.0.0.1:1", topic: out}}
"""
ASKED = """\
pipeline: asked
sources:
  ticks: {type: rate}
  known: {type: postgres, url: "postgresql://127.0.0.1:1/none", table: known}
steps: {matched: {sql: "SELECT ticks.value FROM ticks JOIN known USING (value)"}}
sinks: {out: {of: matched, type: console}}
"""


@pytest.mark.spark
def test_an_error_of_one_pipeline_keeps_spark_from_judging_no_other(penstock, on_shared_spark, project):
    place(project / "pipelines/a.yaml", SORTED.replace("FROM ticks", "FROM tick"))  # GRAPH001 before Spark
    place(project / "pipelines/b.yaml", GONE)  # a service that is away
    place(project / "pipelines/c.yaml", SORTED.replace("sorted_ticks", "sorted_too"))  # an error that Spark finds
    place(project / "pipelines/d.yaml", COUNTS.replace("n FROM", "n, nothing FROM").replace("counts", "columns"))
    place(project / "pipelines/e.yaml", COUNTS)
    ended = penstock("check", "--json", at=project)
    found = {(Path(one["where"]["file"]).stem, one["code"]) for one in ended.json["problems"]}
    assert found >= {("a", "GRAPH001"), ("b", "KAFKA001"), ("c", "OPERATION001"), ("d", "SPARK002")}
    assert "e" not in {file for file, _ in found}
    assert ended.code == 1


@pytest.mark.spark
def test_offline_judges_all_but_whether_services_can_be_reached(penstock, on_shared_spark, project):
    place(project / "pipelines/gone.yaml", GONE)
    place(project / "pipelines/asked.yaml", ASKED)
    place(project / "pipelines/counts.yaml", COUNTS)
    ended = penstock("check", "--offline", "--json", at=project)
    found = {Path(one["where"]["file"]).stem: (one["code"], one["severity"]) for one in ended.json["problems"]}
    assert found == {"gone": ("OPERATION001", "error"), "asked": ("CHECK003", "warning")}
    place(project / "pipelines/gone.yaml", GONE.replace(" ORDER BY value", ""))
    ended = penstock("check", "--offline", at=project)
    assert ended.code == 0
    assert "was not judged by Spark" in ended.out


@pytest.mark.spark
def test_a_query_whose_plan_cannot_be_read_is_a_problem_beside_the_others(
    penstock, on_shared_spark, project, monkeypatch
):
    from penstock.engine import plan_facts

    real = plan_facts.operators

    def broken(plan, node, nodes):
        if node == "newest":
            raise TypeError("unhashable type: 'list'")
        return real(plan, node, nodes)

    monkeypatch.setattr(plan_facts, "operators", broken)
    place(project / "pipelines/a.yaml", SORTED)
    place(project / "pipelines/b.yaml", SORTED.replace("newest", "oldest").replace("sorted_ticks", "b"))
    ended = penstock("check", "--json", at=project)
    assert {Path(one["where"]["file"]).stem: one["code"] for one in ended.json["problems"]} == {
        "a": "CHECK004", "b": "OPERATION001",
    }  # fmt: skip
