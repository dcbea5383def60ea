"""Sessions of one Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark


def test_a_session_takes_settings_that_spark_itself_does_not_know_and_leaves_those_of_the_process(engine):
    static = engine.spark.conf.get("spark.sql.warehouse.dir")
    session = engine.session({"spark.sql.iceberg.locality": "off", "spark.sql.warehouse.dir": "elsewhere"})
    assert session.conf.get("spark.sql.iceberg.locality") == "off"
    assert session.conf.get("spark.sql.warehouse.dir") == static


def test_a_start_that_failed_does_not_spoil_the_next(tmp_path):
    """In a process of its own: this one has its Spark already."""
    code = """
from pathlib import Path
from penstock.engine import session
from penstock.problems import UserError

right = {"spark.master": "local[1]", "spark.driver.memory": "512m"}
for wrong in ({"spark.master": "local[no number]"}, {"spark.driver.memory": "17 bananas"}, {"spark.ui.port": "-5"}):
    try:
        session.start("t", right | {"spark.ui.enabled": "true"} | wrong, Path("spark"))
    except UserError as error:
        assert [problem.code for problem in error.problems] == ["ENGINE007"]
        print(error.problems[0].message)
    else:
        raise AssertionError(f"Spark starts with {wrong}")
for ended in ("killed", "closed"):
    engine = session.start("t", right, Path("spark"))
    assert engine.spark.range(3).count() == 3
    if ended == "killed":
        engine.jvm.process.kill()
    engine.close()
    assert session.running() is None
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "no number" in told.stdout
    assert "its JVM ended with exit code" in told.stdout


def test_a_query_that_restarts_gets_its_own_session_again_with_fresh_settings(engine):
    session = engine.session({"spark.sql.shuffle.partitions": "3", "spark.sql.caseSensitive": "true"})
    session.conf.set("spark.sql.optimizer.excludedRules", "x")
    again = engine.session({"spark.sql.shuffle.partitions": "4"}, session)
    assert again is session
    assert again.conf.get("spark.sql.shuffle.partitions") == "4"
    assert again.conf.get("spark.sql.caseSensitive") == "false"
    assert again.conf.get("spark.sql.optimizer.excludedRules", None) is None
