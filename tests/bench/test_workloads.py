"""Every workload on small data: the result of Penstock is that of the plain-Python model; so is that of PySpark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.answers import digest, expected, received
from penstock.bench.contenders.penstock import environ_of, write_project
from penstock.bench.contenders.plain_spark import Tuning, records_of
from penstock.bench.generate import send, waiting_records, write_file
from penstock.bench.job import Job, from_text
from penstock.bench.receive import read_topic
from penstock.bench.workloads.every_workload import WORKLOADS, named
from penstock.bench.workloads.workload import InputRecord

RECORDS, FILE_RECORDS = 2_500, 250

JOBS = tuple({(workload.by_hand, workload.reads): workload for workload in reversed(WORKLOADS)}.values())
"""Workloads that differ in the job itself; the others differ in how they are measured."""
each_job = pytest.mark.parametrize("workload", JOBS, ids=lambda workload: workload.name)
each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
each_job_now_and_each_workload_in_proof = pytest.mark.parametrize(
    "workload",
    [pytest.param(one, id=one.name, marks=[] if one in JOBS else [pytest.mark.proof]) for one in WORKLOADS],
)


@pytest.fixture
def job(kafka, topic, tmp_path):
    """A job on fresh topics that hold small data."""

    def made(workload):
        workload.place_files(tmp_path)
        results, given = topic(workload.partitions), list(waiting_records(workload, RECORDS))
        if workload.reads == "topic":
            records = topic(workload.partitions)
            send(kafka.servers, records, given)
        else:
            records = str(tmp_path / "incoming")
            Path(records).mkdir()
            for number in range(0, RECORDS, FILE_RECORDS):
                lines = [record.value for record in given[number : number + FILE_RECORDS]]
                write_file(Path(records), number, InputRecord("", "\n".join(lines)))
        return Job(workload.name, kafka.servers, records, results, str(tmp_path), workload.partitions, drains=True)

    return made


def results_of(workload, job):
    return digest(one.outcome for one in received(workload, read_topic(job.servers, job.output)))


def model_of(workload):
    return digest(outcome for _, outcome in expected(workload, waiting_records(workload, RECORDS)))


@pytest.mark.spark
@pytest.mark.services
@each_job_now_and_each_workload_in_proof
def test_penstock_gives_what_the_model_gives(workload, job, run_once, tmp_path, monkeypatch):
    given = job(workload)
    write_project(workload, tmp_path)
    for name, value in environ_of(given).items():
        monkeypatch.setenv(name, value)
    ended = run_once(tmp_path)
    assert ended.ok, ended.problems
    assert results_of(workload, given) == model_of(workload)


@pytest.mark.proof
@pytest.mark.spark
@pytest.mark.services
@each_job
def test_plain_pyspark_gives_what_the_model_gives(workload, job, spark, tmp_path):
    given, session = job(workload), spark.newSession()
    for key, value in workload.settings.items():
        session.conf.set(key, value)
    rows = workload.in_plain_spark(records_of(session, workload, given, Tuning()), given)
    writer = rows.writeStream.format("kafka").outputMode(workload.mode).option("topic", given.output)
    writer = writer.option("kafka.bootstrap.servers", given.servers).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert results_of(workload, given) == model_of(workload)


@each_workload
def test_the_first_record_has_an_answer(workload):
    assert [number for number, _ in expected(workload, waiting_records(workload, 1))] == [0]


def test_workloads_are_found_by_their_name():
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)
    assert all(named(workload.name) is workload for workload in WORKLOADS)


def test_a_job_is_told_as_text():
    job = Job("stateless", "localhost:9092", "in", "out", "folder", 1, drains=False)
    assert from_text(job.to_text()) == job
