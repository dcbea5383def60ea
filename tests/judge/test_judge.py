"""Spark is the judge: Penstock refuses what Spark refuses, by a rule with a name, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.judge.cases import cases
from tests.judge.page import page

ROOT = Path(__file__).parents[2]
SPARKS = {"4.1": None, "4.3": Path(sys.prefix) / "spark-4.3"}


def test_there_are_enough_cases_and_no_two_of_a_name() -> None:
    assert len({case.id for case in cases()}) == len(cases()) >= 400


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each Spark says of every case, asked in a process of its own."""
    found = {}
    for minor, packages in SPARKS.items():
        out = tmp_path_factory.mktemp("judge") / "verdicts.json"
        environ = os.environ | ({"PYTHONPATH": str(packages)} if packages else {})
        subprocess.run([sys.executable, "-m", "tests.judge", str(out)], cwd=ROOT, env=environ, check=True)
        found[minor] = json.loads(out.read_text(encoding="utf-8"))
    return found


@pytest.mark.spark
@pytest.mark.parametrize("minor", SPARKS)
def test_penstock_and_spark_agree(reports: dict[str, Any], minor: str) -> None:
    report = reports[minor]
    assert report["spark"].startswith(minor)
    apart = [verdict for verdict in report["verdicts"] if not verdict["agrees"]]
    print(f"Spark {report['spark']}: agree {len(report['verdicts']) - len(apart)} of {len(report['verdicts'])}")
    assert not apart


@pytest.mark.spark
def test_the_page_of_agreement_tells_what_they_said(reports: dict[str, Any]) -> None:
    written = (ROOT / "docs/agreement.md").read_text(encoding="utf-8")
    assert written == page(list(reports.values())), "run scripts/write_agreement.py"
