"""The real runner, for a few seconds; what it finds is judged, how fast it was is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from textwrap import dedent

import pytest

from penstock.bench import entrant
from penstock.bench.contenders.contender import Contender, Launch
from penstock.bench.contenders.every_contender import FLOOR
from penstock.bench.contenders.penstock import LOW
from penstock.bench.processes import Measured, alive, family
from penstock.bench.rounds import run_workload
from penstock.bench.turn import Options
from penstock.bench.workloads import boundary, drain, files, keyed_count, recovery, stateless

OPTIONS = Options(rounds=1, seconds=2, warm_seconds=1, rate=200, records=2_000)
SHORT = Options(rounds=1, seconds=1, warm_seconds=0.6, rate=200, records=2_000)


@pytest.fixture
def short_laps(monkeypatch):
    """For a contender that is up at once and never lags: laps without the seconds that wait for a Spark to settle."""
    monkeypatch.setattr(entrant, "_LEAD_SECONDS", 0.4)
    monkeypatch.setattr(entrant, "SETTLE_SECONDS", 0.2)
    monkeypatch.setattr(entrant, "_REST_SECONDS", 0.1)


@pytest.mark.proof
@pytest.mark.spark
@pytest.mark.services
def test_the_floor_and_penstock_answer_every_record(kafka):
    floor, ours = run_workload(stateless.WORKLOAD, [FLOOR, LOW], kafka.servers, OPTIONS)
    assert [floor.problem, ours.problem] == [None, None]
    assert floor.digest == ours.digest
    assert floor.answers == ours.answers == 1_261
    for run in (floor, ours):
        assert 0 < run.latency.p50 <= run.latency.max
        assert min(run.rows_per_second, run.cpu_seconds_per_million, run.peak_memory_mb, run.first_row_seconds) > 0


@pytest.mark.services
def test_what_waits_is_drained_to_the_end(kafka):
    (run,) = run_workload(drain.WORKLOAD, [FLOOR], kafka.servers, OPTIONS)
    assert (run.problem, run.answers, run.latency) == (None, 1_800, None)
    assert run.rows_per_second > 0


@pytest.mark.proof
@pytest.mark.spark
@pytest.mark.services
def test_a_contender_that_is_killed_goes_on(kafka):
    """The floor keeps no checkpoint: it reads everything again, and what it writes twice counts once."""
    few = replace(recovery.WORKLOAD, backlog=300)
    for run in run_workload(few, [FLOOR, LOW], kafka.servers, OPTIONS):
        assert (run.problem, run.answers) == (None, 1_700)
        assert run.recovery_seconds > 0
        assert run.pause_milliseconds is None


@pytest.mark.services
def test_the_longest_pause_is_told_where_it_is_sought(kafka, short_laps):
    (run,) = run_workload(boundary.WORKLOAD, [FLOOR], kafka.servers, SHORT)
    assert run.problem is None
    assert run.pause_milliseconds > 0


@pytest.mark.services
def test_files_are_records_too(kafka, short_laps):
    few = replace(files.WORKLOADS[0], backlog=30)
    (run,) = run_workload(few, [FLOOR], kafka.servers, SHORT)
    assert run.problem is None
    assert run.answers == 44, "of 50, one in ten or so is worth too little, and the rest has an answer"


def contender(code):
    return Contender("other", "", lambda workload, job: Launch((sys.executable, "-c", code, job.to_text())))


@pytest.mark.services
def test_a_contender_that_fails_is_told_once_and_the_others_run(kafka, short_laps):
    failing = contender("raise SystemExit('no such luck')")
    failed, *others = run_workload(stateless.WORKLOAD, [failing, FLOOR], kafka.servers, replace(SHORT, rounds=2))
    assert "code 1" in failed.problem
    assert "no such luck" in failed.problem
    assert [(run.contender, run.round, run.problem) for run in others] == [("floor", 1, None), ("floor", 2, None)]


@pytest.mark.services
def test_a_contender_has_the_modules_that_we_have(kafka, monkeypatch, tmp_path):
    """It runs in a folder of its own, where a relative path would lead to another Spark, or to none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"some/spark{os.pathsep}/other")
    asked = contender("import os; raise SystemExit('it has ' + os.environ['PYTHONPATH'])")
    (run,) = run_workload(stateless.WORKLOAD, [asked], kafka.servers, OPTIONS)
    assert f"it has {tmp_path}/some/spark{os.pathsep}/other" in run.problem


@pytest.mark.services
def test_contenders_go_on_where_they_were_held(kafka, short_laps):
    """Each round is a lap of the same process, and each has answers to its own records."""
    again = replace(FLOOR, name="again")
    runs = run_workload(keyed_count.WORKLOAD, [FLOOR, again], kafka.servers, replace(SHORT, rounds=3))
    assert [run.contender for run in runs] == ["floor", "again", "again", "floor", "floor", "again"]
    assert {run.problem for run in runs} == {None}
    assert [run.answers for run in runs] == [401, 401, 641, 641, 881, 881]
    assert len({run.first_row_seconds for run in runs}) == 2, "two starts, one of each contender"


@pytest.mark.services
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('{"id": 0, "city": "AMSTERDAM", "gross": 59500}', "1,799 of 1,800 answers did not come"),
        (None, "is not the model's"),
    ],
)
def test_a_run_with_another_result_does_not_count(kafka, value, problem):
    """The second one answers each record, and one of them wrongly too."""
    wrong = contender(
        f"""if True:
        import sys
        from confluent_kafka import Producer
        from penstock.bench.contenders.floor import loop
        from penstock.bench.job import from_text
        job = from_text(sys.argv[1])
        value = {value!r}
        if value is None:
            loop(job)
            value = '{{"id": 0, "city": "AMSTERDAM", "gross": 1}}'
        producer = Producer({{"bootstrap.servers": job.servers}})
        producer.produce(job.output, value)
        producer.flush(30)
        """
    )
    (run,) = run_workload(drain.WORKLOAD, [wrong], kafka.servers, OPTIONS)
    assert problem in run.problem


def test_a_held_process_does_nothing_until_it_goes_on(tmp_path):
    code = "import time\nwhile True: print(end='.', flush=True); time.sleep(0.01)"
    process = Measured((sys.executable, "-c", code), os.environ, tmp_path, every_seconds=0.05)
    while not process.said():
        time.sleep(0.05)
    process.hold()
    (before, _), after = (len(process.said()), time.sleep(0.5)), len(process.said())
    assert before == after
    process.go_on()
    while len(process.said()) == before:
        time.sleep(0.05)
    process.hold()
    process.stop()
    assert process.exit_code is not None


def test_a_measured_process_ends_with_its_children(tmp_path):
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).wait()"
    process = Measured((sys.executable, "-c", code), os.environ, tmp_path, every_seconds=0.05)
    while len(found := family(process.pid)) < 2:
        time.sleep(0.05)
    process.stop()
    assert alive(found) == []
    assert process.peak_memory_bytes > 0


def test_nothing_is_left_of_a_held_process_when_the_bench_is_killed(tmp_path):
    child = "import time; time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{child}'], start_new_session=True)"
    holder = f"""
    import os, sys, time
    from pathlib import Path
    from penstock.bench.processes import Measured, family
    process = Measured((sys.executable, "-c", {parent!r}), os.environ, Path({str(tmp_path)!r}))
    while len(family(process.pid)) < 2:
        time.sleep(0.05)
    process.hold()
    print(process.pid, flush=True)
    time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", dedent(holder)], stdout=subprocess.PIPE, text=True) as bench:
        held = family(int(bench.stdout.readline()))
        assert len(held) == 2
        bench.kill()
    deadline = time.monotonic() + 120
    while left := alive(held):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
