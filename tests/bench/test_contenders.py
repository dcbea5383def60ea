"""How each contender is told its job."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench.contenders import flink, penstock, plain_spark
from penstock.bench.contenders.every_contender import CONTENDERS
from penstock.bench.job import Job
from penstock.bench.workloads.every_workload import WORKLOADS, named
from penstock.problems import UserError

JOB = Job("stateless", "localhost:9092", "in", "out", "/folder", 1, drains=False)

each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)


@each_workload
@pytest.mark.parametrize("contender", [penstock.LOW, penstock.REAL_TIME], ids=lambda contender: contender.name)
def test_pipelines_are_found_well(workload, contender, judged, tmp_path):
    if contender.cannot(workload) is None:
        workload.place_files(tmp_path)
        contender.launch(workload, replace(JOB, folder=str(tmp_path)))
        text = (tmp_path / "pipelines" / f"{workload.query}.yaml").read_text()
        assert [problem for problem in judged(text) if problem.severity == "error"] == []


def test_real_time_says_why_it_takes_no_part():
    reasons = {workload.name: penstock.no_real_time(workload) for workload in WORKLOADS}
    assert reasons["stateless"] is None
    assert reasons["enrichment"] is None
    assert "Python" in reasons["udf"]
    assert "no end" in reasons["drain"]
    assert "trigger of its own" in reasons["every-2s"]


def test_real_time_has_short_batches_where_the_pause_between_two_is_sought():
    boundary = named("boundary")
    assert "trigger: {real_time: 5 seconds}" in penstock.pipeline_text(boundary, "realtime")
    assert "trigger: {real_time: 1 hour}" in penstock.pipeline_text(named("stateless"), "realtime")
    assert "trigger" not in penstock.pipeline_text(boundary, "low")
    assert penstock.no_real_time(boundary) is None


def test_one_partition_is_a_contender_where_there_is_a_shuffle():
    assert plain_spark.NAIVE.cannot(named("stateless"))
    assert plain_spark.NAIVE.cannot(named("keyed-count")) is None


def test_plain_pyspark_is_told_its_settings():
    launch = plain_spark.TUNED.launch(named("stateless"), JOB)
    told = json.loads(launch.command[-1])
    assert told["job"]["output"] == "out"
    assert "spark.sql.shuffle.partitions" in told["tuning"]["settings"]
    assert json.loads(plain_spark.DEFAULTS.launch(named("stateless"), JOB).command[-1])["tuning"]["settings"] == {}


def test_flink_reads_and_writes_json():
    records, results, insert = flink.statements(named("stateless").flink, JOB)
    assert records.startswith("CREATE TABLE records (id BIGINT,")
    assert "'topic' = 'in'" in records
    assert "bounded" not in records
    assert "'connector' = 'kafka'" in results
    assert insert.startswith("INSERT INTO results SELECT")


def test_flink_replaces_rows_by_key_and_ends_where_it_drains():
    job = Job("keyed-count", "localhost:9092", "in", "out", "/folder", 1, drains=True)
    records, results, _ = flink.statements(named("keyed-count").flink, job)
    assert "'scan.bounded.mode' = 'latest-offset'" in records
    assert "PRIMARY KEY (card) NOT ENFORCED" in results
    assert "upsert-kafka" in results


def test_flink_finds_the_functions_of_a_workload(monkeypatch):
    monkeypatch.setattr(flink, "_jars", lambda: ())
    assert flink.SQL.launch(named("udf"), JOB).environ == {"PYTHONPATH": "/folder"}
    assert flink.settings(named("udf"), JOB)["python.files"] == "/folder/scoring.py,/folder/for_flink.py"
    assert flink.SQL.launch(named("stateless"), JOB).environ == {"PYTHONPATH": ""}
    assert "python.files" not in flink.settings(named("stateless"), JOB)


def test_flink_is_tuned_where_it_runs_python(monkeypatch):
    monkeypatch.setattr(flink, "_jars", lambda: ())
    bundles = "python.fn-execution.bundle.time"
    assert bundles in flink.TUNED.launch(named("udf"), JOB).command[-1]
    assert bundles not in flink.SQL.launch(named("udf"), JOB).command[-1]
    assert flink.TUNED.cannot(named("stateless")) == "without functions in Python it is the same as `flink`"
    assert flink.TUNED.cannot(named("udf")) is None


def test_flink_that_cannot_be_installed_is_one_problem(monkeypatch, tmp_path):
    monkeypatch.setattr(flink, "_jars", lambda: ())
    monkeypatch.setattr(flink, "_folder", lambda: tmp_path / "environment")
    monkeypatch.setattr(flink.sys, "executable", str(Path("/no/such/python")))
    with pytest.raises(UserError) as told:
        flink.prepare()
    assert [problem.code for problem in told.value.problems] == ["BENCH004"]


def test_contenders_have_names_of_their_own():
    assert len({contender.name for contender in CONTENDERS}) == len(CONTENDERS)
