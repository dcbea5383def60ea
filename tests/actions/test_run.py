"""Runs on the real engine: what is read, written, resumed and refused."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from penstock.problems import UserError
from tests.conftest import place

pytestmark = pytest.mark.spark

COPY = """
    pipeline: copy
    latency: low
    sources: {lines: {type: files, path: data/in, format: text}}
    steps: {loud: {sql: SELECT upper(value) AS value FROM lines}}
    sinks: {out: {of: loud, type: files, path: data/out, format: text}}
"""


COUNT = """
    pipeline: copy
    latency: low
    sources: {lines: {type: files, path: data/in, format: text}}
    steps: {loud: {sql: "SELECT value, count(*) AS n FROM lines GROUP BY value"}}
    sinks: {out: {of: loud, type: spark, format: noop}}
"""
JSON_COPY = COPY.replace(
    "format: text}}\n    steps", "format: {type: json, schema: 'value STRING, day INT'}}}\n    steps"
)


def lines_in(folder: Path, spark) -> list[str]:
    """What a reader that honours Spark's log sees."""
    return sorted(row.value for row in spark.read.text(str(folder)).collect())


def checkpoint_of(root: Path, pipeline: str, query: str) -> Path:
    return root / "storage" / "checkpoints" / pipeline / query / "0001"


def forget_last_commit(checkpoint: Path) -> int:
    """Makes the last batch look as if the process had died before its commit."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    return last


@pytest.mark.covers("model.incremental", "recovery.resume")
def test_a_second_run_adds_nothing_and_a_new_file_adds_exactly_its_rows(project_at, run_once, spark):
    root = project_at(COPY, files={"data/in/1.txt": "a\nb\n"})
    assert run_once(root).ok
    assert lines_in(root / "data/out", spark) == ["A", "B"]

    again = run_once(root)
    assert again.ok
    assert again.queries[0].rows_in == 0
    assert lines_in(root / "data/out", spark) == ["A", "B"]

    place(root / "data/in/2.txt", "c\n")
    more = run_once(root)
    assert (more.queries[0].rows_in, more.queries[0].rows_out) == (1, 1)
    assert lines_in(root / "data/out", spark) == ["A", "B", "C"]


@pytest.mark.covers("recovery.crash")
def test_a_batch_that_is_run_again_after_a_crash_repeats_no_row(project_at, run_once, spark):
    root = project_at(COPY, files={"data/in/1.txt": "a\nb\n"})
    run_once(root)
    forget_last_commit(checkpoint_of(root, "copy", "loud"))
    place(root / "data/in/2.txt", "c\n")
    assert run_once(root).ok
    assert lines_in(root / "data/out", spark) == ["A", "B", "C"]


@pytest.mark.covers("query.identity", "recovery.resume")
def test_the_checkpoint_has_an_identity_and_a_manifest_from_birth_to_every_resume(project_at, run_once):
    root = project_at(COPY, files={"data/in/1.txt": "a\n"})
    first = run_once(root)
    checkpoint = checkpoint_of(root, "copy", "loud")
    manifest = json.loads(checkpoint.with_suffix(".json").read_text())
    assert manifest["id"] == first.queries[0].id == json.loads((checkpoint / "metadata").read_text())["id"]
    assert manifest["settings"]["spark.sql.shuffle.partitions"] == "1"  # half of two cores, for `latency: low`
    assert run_once(root).queries[0].id == manifest["id"]


def test_the_manifest_holds_references_and_never_what_they_resolve_to(project_at, run_once, monkeypatch):
    monkeypatch.setenv("FOLDER_TOKEN", "data/in")
    root = project_at(COPY.replace("path: data/in", "path: '${FOLDER_TOKEN}'"), files={"data/in/1.txt": "a\n"})
    assert run_once(root).ok
    manifest = checkpoint_of(root, "copy", "loud").with_suffix(".json").read_text()
    assert "${FOLDER_TOKEN}" in manifest
    assert str(root / "data/in") not in manifest


@pytest.mark.covers("recovery.settings-fixed")
def test_settings_of_the_birth_are_kept_when_the_pipeline_asks_for_others(project_at, run_once, spark):
    root = project_at(
        COUNT + "    queries: {loud: {mode: update, spark: {spark.sql.shuffle.partitions: 3}}}\n",
        files={"data/in/1.txt": "a\n"},
    )
    assert run_once(root).ok
    text = (root / "pipelines/p0.yaml").read_text().replace("partitions: 3", "partitions: 5")
    (root / "pipelines/p0.yaml").write_text(text)
    place(root / "data/in/2.txt", "b\n")
    again = run_once(root)
    assert again.ok
    assert [problem.code for problem in again.problems] == ["CHECKPOINT005"]
    stores = [
        path.name for path in (checkpoint_of(root, "copy", "loud") / "state" / "0").iterdir() if path.name.isdigit()
    ]
    assert sorted(stores) == ["0", "1", "2"]


def test_a_renamed_step_is_refused_until_it_says_what_it_was(project_at, run_once, spark):
    root = project_at(COPY, files={"data/in/1.txt": "a\n"})
    born = run_once(root).queries[0].id
    renamed = (root / "pipelines/p0.yaml").read_text().replace("loud", "shout")
    (root / "pipelines/p0.yaml").write_text(renamed)

    refused = run_once(root)
    assert not refused.started
    assert [problem.code for problem in refused.problems] == ["CHECKPOINT001"]
    assert "was: loud" in refused.problems[0].fix

    (root / "pipelines/p0.yaml").write_text(renamed + "queries: {shout: {was: loud}}\n")
    place(root / "data/in/2.txt", "b\n")
    resumed = run_once(root)
    assert resumed.ok
    assert resumed.queries[0].id == born
    assert resumed.queries[0].rows_in == 1
    assert lines_in(root / "data/out", spark) == ["A", "B"]


def test_a_failing_query_ends_the_run_with_one_problem_and_goes_on_after_it_is_mended(project_at, run_once, spark):
    broken = COPY.replace("upper(value)", "CAST(CAST(value AS INT) AS STRING)")
    root = project_at(broken, files={"data/in/1.txt": "1\nnot a number\n"})
    failed = run_once(root)
    assert failed.started
    assert [problem.code for problem in failed.problems] == ["FAILURE010"]
    assert "not a number" in failed.problems[0].message
    assert "try_cast" in failed.problems[0].fix
    lines = (root / "pipelines/p0.yaml").read_text().splitlines()
    assert "CAST(value AS INT)" in lines[failed.problems[0].where.line - 1]
    assert "Traceback" not in failed.problems[0].message

    mended = (root / "pipelines/p0.yaml").read_text().replace("CAST(value AS INT)", "try_cast(value AS INT)")
    (root / "pipelines/p0.yaml").write_text(mended)
    assert run_once(root).ok
    assert len(spark.read.text(str(root / "data/out")).collect()) == 2


def test_a_file_that_grew_after_it_was_read_is_told(project_at, run_once):
    root = project_at(COPY, files={"data/in/1.txt": "a\n"})
    run_once(root)
    time.sleep(0.05)
    with (root / "data/in/1.txt").open("a") as file:
        file.write("b\n")
    assert [problem.code for problem in run_once(root).problems] == ["FILES006"]


@pytest.mark.covers("schema.folders.fixed")
def test_changed_partition_folders_are_refused(project_at, run_once):
    text = COPY.replace("format: text}}\n    steps", "format: {type: json, schema: 'value STRING'}}}\n    steps")
    root = project_at(text, files={"data/in/day=1/1.json": '{"value": "a"}\n'})
    assert run_once(root).ok
    shutil.rmtree(root / "data/in/day=1")
    place(root / "data/in/country=de/2.json", '{"value": "b"}\n')
    refused = run_once(root)
    assert not refused.started
    assert [problem.code for problem in refused.problems] == ["FILES004"]


@pytest.mark.covers("query.stop")
def test_a_run_for_a_time_stops_after_the_batch_under_way(project_at, run_once):
    root = project_at(
        """
        pipeline: ticks
        latency: low
        sources: {ticks: {type: rate, rows_per_second: 100}}
        sinks: {out: {of: ticks, type: files, path: out, format: json}}
        """
    )
    result = run_once(root, once=False, for_seconds=4)
    assert result.ok
    assert result.queries[0].state == "stopped"
    assert result.queries[0].rows_in > 0
    checkpoint = checkpoint_of(root, "ticks", "ticks")
    committed = {path.name for path in (checkpoint / "commits").iterdir() if path.name.isdigit()}
    assert str(result.queries[0].last.batch) in committed


@pytest.mark.covers("query.several")
def test_two_pipelines_run_side_by_side_in_sessions_of_their_own(project_at, run_once, spark):
    other = (
        COPY.replace("pipeline: copy", "pipeline: twice")
        .replace("data/out", "data/twice")
        .replace("upper(value)", "value || value")
    )
    root = project_at(COPY, other, files={"data/in/1.txt": "a\n"})
    result = run_once(root)
    assert result.ok
    assert len(result.queries) == 2
    assert lines_in(root / "data/out", spark) == ["A"]
    assert lines_in(root / "data/twice", spark) == ["aa"]


def test_output_that_is_ahead_of_its_checkpoint_is_refused_before_rows_are_lost(project_at, run_once, spark):
    root = project_at(COPY, files={"data/in/1.txt": "a\n"})
    assert run_once(root).ok
    shutil.rmtree(root / "storage")
    refused = run_once(root)
    assert not refused.started
    assert [problem.code for problem in refused.problems] == ["FILES011"]
    shutil.rmtree(root / "data/out")
    assert run_once(root).ok
    assert lines_in(root / "data/out", spark) == ["A"]


def test_what_spark_says_of_a_secret_is_masked(project_at, run_once, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2hunter2")
    root = project_at(
        """
        pipeline: secret
        sources: {lines: {type: spark, format: '${DB_PASSWORD}', schema: 'a INT'}}
        sinks: {out: {of: lines, type: console}}
        """
    )
    refused = run_once(root)
    assert [problem.code for problem in refused.problems] == ["SPARK001"]
    assert "••••••" in refused.problems[0].message
    assert "hunter2" not in str(refused)


def test_paths_behind_references_are_judged_too(project_at, run_once, monkeypatch):
    monkeypatch.setenv("OUT", "data/in/out")
    root = project_at(COPY.replace("path: data/out", "path: '${OUT}'"), files={"data/in/1.txt": "a\n"})
    refused = run_once(root)
    assert not refused.started
    assert [problem.code for problem in refused.problems] == ["FILES003"]


def test_settings_of_the_project_win_over_the_latency_word(project_at, run_once):
    root = project_at(
        COUNT + "    queries: {loud: {mode: update}}\n",
        files={"data/in/1.txt": "a\n"},
        settings="name: test\nspark: {spark.sql.shuffle.partitions: 4}\n",
    )
    assert run_once(root).ok
    manifest = json.loads(checkpoint_of(root, "copy", "loud").with_suffix(".json").read_text())
    assert manifest["settings"]["spark.sql.shuffle.partitions"] == "4"


def test_a_source_that_was_empty_at_birth_may_be_partitioned_later(project_at, run_once, spark):
    text = COPY.replace(
        "format: text}}\n    steps", "format: {type: json, schema: 'value STRING, day INT'}}}\n    steps"
    )
    root = project_at(text)
    (root / "data/in").mkdir(parents=True)
    assert run_once(root).ok
    place(root / "data/in/day=1/1.json", '{"value": "a"}\n')
    assert run_once(root).ok
    assert lines_in(root / "data/out", spark) == ["A"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("listeners: ['no_such_module:Listener']", "SPARK007"),
        ("listeners: ['json:JSONDecoder']", "SPARK007"),
        ("sinks: {out: {of: lines, type: files, path: data/out, format: json, partition_by: [vlaue]}}", "SPARK003"),
    ],
)
def test_what_a_start_would_refuse_is_refused_before_anything_is_written(wrong, code, project_at, run_once):
    text = "pipeline: p\nsources: {lines: {type: files, path: data/in, format: text}}\n"
    if "sinks:" not in wrong:
        text += "sinks: {out: {of: lines, type: files, path: data/out, format: json}}\n"
    root = project_at(text + wrong + "\n", files={"data/in/1.txt": "a\n"})
    refused = run_once(root)
    assert not refused.started
    assert [problem.code for problem in refused.problems] == [code]
    assert not (root / "storage" / "checkpoints").exists()
    assert not (root / "data/out").exists()


def test_a_checkpoint_that_lost_its_identity_is_refused(project_at, run_once):
    root = project_at(COPY, files={"data/in/1.txt": "a\n"})
    assert run_once(root).ok
    shutil.rmtree(checkpoint_of(root, "copy", "loud"))
    shutil.rmtree(root / "data/out")
    refused = run_once(root)
    assert [problem.code for problem in refused.problems] == ["CHECKPOINT006"]


def test_two_projects_on_one_storage_do_not_run_together(project_at, run_once, tmp_path, engine):
    from penstock.checkpoint.lock import held

    storage = tmp_path / "shared"
    root = project_at(COPY, files={"data/in/1.txt": "a\n"}, settings=f"name: test\nstorage: {storage}\n")
    with held(engine.spark, storage / "locks", "copy"), pytest.raises(UserError) as refused:
        run_once(root)
    assert [problem.code for problem in refused.value.problems] == ["CHECKPOINT003"]
