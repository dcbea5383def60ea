from __future__ import annotations

import pytest

from penstock.engine.connectors import available
from penstock.engine.spark_versions import SUPPORTED, Feature, minor, spark_version, versions_with
from penstock.problems import UserError


@pytest.mark.parametrize(("version", "short"), [("4.1.3", "4.1"), ("4.3.0.dev1", "4.3"), ("4.2", "4.2")])
def test_minor(version: str, short: str) -> None:
    assert minor(version) == short


def test_real_time_mode_differs_by_version() -> None:
    assert [one.real_time for one in SUPPORTED] == ["jvm trigger", "api", "api"]
    assert "real-time aggregation" not in spark_version("4.2").real_time_operators
    assert "real-time aggregation" in spark_version("4.3").real_time_operators


@pytest.mark.parametrize("spark_minor", [one.spark for one in SUPPORTED])
def test_the_connectors_that_work_are_those_that_are_locked(spark_minor: str) -> None:
    assert spark_version(spark_minor).connectors == available(spark_minor)


@pytest.mark.parametrize(
    ("feature", "versions"),
    [
        ("iceberg", ("4.1",)),
        ("delta", ("4.1", "4.2")),
        ("kafka", ("4.1", "4.2", "4.3")),
        ("real-time stateless", ("4.1", "4.2", "4.3")),
        ("real-time deduplication", ("4.3",)),
        ("real-time trigger in Python", ("4.2", "4.3")),
    ],
)
def test_versions_with(feature: Feature, versions: tuple[str, ...]) -> None:
    assert versions_with(feature) == versions


@pytest.mark.parametrize("spark_minor", ["3.5", "4.0", "4.10", "nonsense", ""])
def test_an_unsupported_spark_is_told_which_are(spark_minor: str) -> None:
    with pytest.raises(UserError, match=r"ENGINE006 .*4\.1, 4\.2, 4\.3"):
        spark_version(spark_minor)
