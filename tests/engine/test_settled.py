"""Plans are optimised once where every batch would get the same one."""

from __future__ import annotations

import pytest

from penstock.engine.settled import settled, spare_rules

pytestmark = pytest.mark.spark


@pytest.fixture
def stream(spark):
    spark.readStream.format("rate").load().createOrReplaceTempView("rates")
    spark.range(5).createOrReplaceTempView("table_beside")
    return spark.sql


def test_rows_of_one_stream_start_from_an_optimised_plan(stream):
    rows = stream("SELECT 1 + 1 AS two, value FROM (SELECT * FROM rates WHERE value > 1) WHERE value > 1")
    plan = settled(rows)._jdf.queryExecution().analyzed().toString()
    assert settled(rows).schema == rows.schema
    assert settled(rows).isStreaming
    assert "2 AS two" in plan
    assert plan.count("Filter") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT value, current_timestamp() AS at FROM rates",
        "SELECT value FROM rates WHERE timestamp > CAST('now' AS TIMESTAMP)",
        "SELECT value FROM rates JOIN table_beside ON id = value",
        "SELECT value FROM rates WHERE value IN (SELECT id FROM table_beside)",
        "SELECT value FROM rates UNION ALL SELECT value FROM rates",
    ],
)
def test_what_each_batch_must_see_for_itself_stays(stream, sql):
    rows = stream(sql)
    assert settled(rows) is rows


RULES = "spark.sql.optimizer.excludedRules"
FOLDING = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"


@pytest.fixture
def session(spark):
    """Of a query: what it sets is its own."""
    own = spark.newSession()
    own.readStream.format("rate").load().createOrReplaceTempView("rates")
    return own


def needed_by(session):
    return session._jsparkSession.sessionState().optimizer().nonExcludableRules().mkString(",").split(",")


def test_rules_that_find_nothing_to_do_are_spared(session):
    spare_rules(session.sql("SELECT value FROM rates WHERE value > 1L"))
    spared = session.conf.get(RULES).split(",")
    assert FOLDING in spared
    assert len(spared) > 50
    assert not set(spared) & set(needed_by(session))
    assert session.sql("SELECT 1 + 1 AS two").collect() == [(2,)]


def test_rules_that_do_something_stay(session):
    spare_rules(session.sql("SELECT value, count(*) + (1 + 1) AS n FROM rates GROUP BY value"))
    assert FOLDING not in session.conf.get(RULES).split(",")


def test_no_rule_is_spared_beside_a_table(session):
    session.range(5).createOrReplaceTempView("table_beside")
    spare_rules(session.sql("SELECT value FROM rates JOIN table_beside ON id = value"))
    assert session.conf.get(RULES, None) is None


def test_a_users_own_list_of_rules_wins(session):
    session.conf.set(RULES, FOLDING)
    spare_rules(session.sql("SELECT value FROM rates"))
    assert session.conf.get(RULES) == FOLDING
