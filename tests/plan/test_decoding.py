"""Sources that decode their records in another way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.facts.signature import EndPlace
from penstock.plan.decoding import decoding_findings
from penstock.plan.verdict import PlanFinding
from penstock.problems import Where

CSV = {"type": "csv", "schema": "k STRING, u BIGINT, v BIGINT"}
JSON = {"type": "json", "schema": "k STRING, at TIMESTAMP"}


def findings(before: dict[str, Any], now: dict[str, Any], *, stateful: bool = True) -> list[PlanFinding]:
    was, is_ = (
        EndPlace("a", "files", "in", {}, False, {key: json.dumps(value) for key, value in given.items()})
        for given in (before, now)
    )
    found = decoding_findings(
        [was],
        [is_],
        "q",
        "penstock checkpoint reset p.q --from earliest",
        lambda *_: Where("p.yaml", 1),
        stateful=stateful,
    )
    return list(found)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (CSV, {**CSV, "schema": "k STRING, v BIGINT, u BIGINT"}, "the order of the columns"),
        (CSV, {**CSV, "schema": "k STRING, v BIGINT"}, "the order of the columns"),
        (CSV, {**CSV, "schema": "k DECIMAL(10, 2), n BIGINT, u BIGINT, v BIGINT"}, "the order of the columns"),
        (CSV, {**CSV, "sep": ";"}, "`sep`"),
        (CSV, {**CSV, "spark_options": {"sep": ";"}}, "`sep`"),
        (JSON, {**JSON, "timestamp_format": "dd/MM/yyyy"}, "`timestamp_format`"),
        (JSON, {**JSON, "timezone": "Asia/Tokyo"}, "`timezone`"),
    ],
)
def test_a_column_that_means_something_else_restarts_a_query_with_state(
    before: dict[str, Any], now: dict[str, Any], said: str
) -> None:
    (finding,) = findings({"format": before}, {"format": now})
    assert (finding.code, finding.verdict) == ("PLAN031", "restart")
    assert said in finding.message
    assert "accept: [PLAN031]" in finding.fix
    (stateless,) = findings({"format": before}, {"format": now}, stateful=False)
    assert stateless.verdict == "resume"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (JSON, {**JSON, "schema": "at TIMESTAMP, k STRING"}),
        (JSON, {**JSON, "schema": "k STRING, at TIMESTAMP, z STRING"}),
        (JSON, {**JSON, "allow_comments": True}),
        (CSV, {**CSV, "schema": CSV["schema"] + ", w DOUBLE"}),
        (CSV, {**CSV, "max_columns": 500}),
        (CSV, {**CSV, "schema": "`K` string, u bigint, v bigint"}),
    ],
)
def test_what_leaves_each_column_as_it_is_is_no_finding(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert findings({"format": before}, {"format": now}) == []


def test_another_format_altogether_is_a_warning() -> None:
    (finding,) = findings({"format": CSV}, {"format": JSON})
    assert (finding.code, finding.verdict) == ("PLAN031", "warn")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({}, {"expect": {"positive": {"that": "v > 0", "otherwise": "drop"}}}),
        ({"on_bad_record": "fail"}, {"on_bad_record": "drop"}),
        ({"watermark": {"column": "at", "max_future": "1 hour"}}, {"watermark": {"column": "at"}}),
    ],
)
def test_a_filter_of_the_source_is_a_warning_where_there_is_state(before: dict[str, Any], now: dict[str, Any]) -> None:
    (finding,) = findings(before, now)
    assert (finding.code, finding.verdict) == ("PLAN008", "warn")
    assert findings(before, now, stateful=False)[0].verdict == "resume"


def test_an_expectation_that_only_counts_lets_the_same_rows_through() -> None:
    assert findings({}, {"expect": {"positive": {"that": "v > 0", "otherwise": "warn"}}}) == []
