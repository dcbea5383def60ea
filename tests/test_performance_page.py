"""The figures of docs/performance.md are those that were measured last, and their commands can be run."""

from __future__ import annotations

import shlex

import pytest
from scripts import performance

from penstock.bench.contenders.every_contender import CONTENDERS
from penstock.bench.workloads.every_workload import named


def test_the_page_tells_what_was_measured():
    page = performance.PAGE.read_text(encoding="utf-8")
    assert performance.written(page) == page
    assert all(f"<!-- measured: {one.name} -->" in page for one in performance.MEASUREMENTS)


@pytest.mark.parametrize("one", performance.MEASUREMENTS, ids=lambda one: one.name)
def test_its_commands_name_what_there_is(one):
    workload, option, contenders, *_ = shlex.split(one.arguments)
    assert named(workload).name == workload
    assert option == "--contenders"
    assert set(contenders.split(",")) <= {contender.name for contender in CONTENDERS}
