"""Sessions of one Spark."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark


def test_a_session_takes_settings_that_spark_itself_does_not_know_and_leaves_those_of_the_process(engine):
    static = engine.spark.conf.get("spark.sql.warehouse.dir")
    session = engine.session({"spark.sql.iceberg.locality": "off", "spark.sql.warehouse.dir": "elsewhere"})
    assert session.conf.get("spark.sql.iceberg.locality") == "off"
    assert session.conf.get("spark.sql.warehouse.dir") == static
