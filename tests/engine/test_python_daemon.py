"""Python workers are forks of a daemon that has imported what they need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.engine import python_daemon


def test_it_is_named_to_spark_only_where_a_new_python_finds_it(monkeypatch, tmp_path):
    assert python_daemon.settings({}) == {"spark.python.daemon.module": "penstock.engine.python_daemon"}

    class Elsewhere:
        def locate_file(self, name: str) -> Path:
            return tmp_path

    monkeypatch.setattr(python_daemon, "distribution", lambda name: Elsewhere())
    assert python_daemon.settings({}) == {}
    assert python_daemon.settings({"PYTHONPATH": f"other:{tmp_path}"}) != {}


@pytest.mark.spark
def test_a_worker_has_pandas_and_arrow_before_its_first_row(spark):
    def loaded(_: int) -> tuple[bool, ...]:
        return tuple(name in sys.modules for name in ("pandas", "pyarrow"))

    assert spark.sparkContext.parallelize([0], 1).map(loaded).collect() == [(True, True)]
