"""The limits of the suite itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.limits import CPU_SECONDS, MOST_STARTS, PROCESS_FILES, directory_of, kind_of, over_the_limits

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["/venv/bin/penstock", "run", "--once"], "penstock"),
        (["python", "-m", "penstock", "check"], "penstock"),
        (["python", "-m", "tests.judge", "out.json"], "judge"),
        (["/jdk/bin/java", "-cp", "jars", "kafka.Kafka"], "java"),
        (["/jdk/bin/java", "-version"], None),
        (["/pyspark/bin/spark-submit", "pyspark-shell"], "spark-submit"),
        (["python", "-c", "pass"], None),
    ],
)
def test_what_a_command_starts(command, kind):
    assert kind_of(command) == kind


def test_what_is_over_a_limit_is_named():
    assert over_the_limits(Counter(MOST_STARTS), dict(CPU_SECONDS)) == []
    many, long = over_the_limits(Counter(penstock=1_000), {"cli": 1e6})
    assert "1000 starts of penstock" in many
    assert "tests/cli" in long


def test_every_directory_has_a_budget_and_every_process_file_exists():
    found = {directory_of(str(file.relative_to(ROOT))) for file in (ROOT / "tests").rglob("test_*.py")}
    assert found == set(CPU_SECONDS)
    assert [file for file in PROCESS_FILES if not (ROOT / file).is_file()] == []
