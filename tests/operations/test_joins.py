"""Joins of every kind: streams with tables, streams with streams, chains of them, and aggregations before and after."""

from __future__ import annotations

import pytest

from tests.operations.cases import SETTINGS, Case, files, in_order, late_of, pipeline, rows_of

pytestmark = pytest.mark.spark


def source(name: str, column: str) -> str:
    return f"""
{name}:
  type: files
  path: {name}
  max_files_per_trigger: 1
  format: {{type: csv, schema: "{column} TIMESTAMP, ad INT"}}
  watermark: {{column: {column}, delay: 10 minutes}}
"""


SOURCES = (
    source("ads", "shown")
    + source("clicks", "clicked")
    + source("buys", "bought")
    + source("ads", "shown").replace("ads:", "every_ad:").partition("  watermark")[0]
    + source("clicks", "clicked").replace("clicks:", "every_click:").partition("  watermark")[0]
    + 'named:\n  type: files\n  path: named\n  read: static\n  format: {type: csv, schema: "ad INT, name STRING"}\n'
)
ROWS = (
    # The last rows of each move the watermark to 11:50; two more ads come too late.
    files("ads", "00:00,1 | 00:05,2 | 00:10,3", "00:30,4", "12:00,100", "00:01,5 | 00:02,6")
    | files("clicks", "00:02,1 | 00:03,9", "00:20,2 | 00:33,4", "12:00,101")
    | files("buys", "00:05,1", "00:34,4", "12:00,102")
    | {"named/a.csv": "1,one\n2,two\n"}
)
_BOUND = "c.clicked BETWEEN a.shown AND a.shown + INTERVAL 10 MINUTES"
_ON = f"ON a.ad = c.ad AND {_BOUND}"
_WINDOWS = {
    "ad_windows": "SELECT window(shown, '10 minutes') AS span, ad FROM ads",
    "click_windows": "SELECT window(clicked, '10 minutes') AS span, ad FROM clicks",
}
STREAMS = (
    Case("inner_", f"SELECT a.ad, c.ad FROM ads a JOIN clicks c {_ON}", ["1 1", "4 4"], ("join.inner",), late=(2, 0)),
    Case(
        "unbounded",
        "SELECT a.ad, c.ad FROM every_ad a JOIN every_click c ON a.ad = c.ad",
        ["1 1", "2 2", "4 4"],
        ("join.inner.unbounded",),
    ),
    Case(
        "left_",
        f"SELECT a.ad, c.ad FROM ads a LEFT JOIN clicks c {_ON}",
        ["1 1", "4 4", "2 None", "3 None"],
        ("join.left", "join.outer.delay", "join.time-range"),
    ),
    Case(
        "right_",
        f"SELECT a.ad, c.ad FROM ads a RIGHT JOIN clicks c {_ON}",
        ["1 1", "4 4", "None 2", "None 9"],
        ("join.right",),
    ),
    Case(
        "full_",
        f"SELECT a.ad, c.ad FROM ads a FULL OUTER JOIN clicks c {_ON}",
        ["1 1", "4 4", "2 None", "3 None", "None 2", "None 9"],
        ("join.full",),
    ),
    Case("semi_", f"SELECT a.ad FROM ads a LEFT SEMI JOIN clicks c {_ON}", ["1", "4"], ("join.semi",)),
    Case(
        "same_window",
        "SELECT date_format(a.span.start, 'HH:mm'), a.ad FROM ad_windows a JOIN click_windows c"
        " ON a.ad = c.ad AND a.span = c.span",
        ["00:00 1", "00:30 4"],
        ("join.window",),
        before=_WINDOWS,
    ),
    Case(
        "same_window_left",
        "SELECT date_format(a.span.start, 'HH:mm'), a.ad, c.ad FROM ad_windows a LEFT JOIN click_windows c"
        " ON a.ad = c.ad AND a.span = c.span",
        ["00:00 1 1", "00:00 2 None", "00:10 3 None", "00:30 4 4"],
        ("join.window", "join.left"),
    ),
    Case(
        "chain",
        "SELECT s.ad, date_format(b.bought, 'HH:mm') FROM clicked_ads s JOIN buys b"
        " ON s.ad = b.ad AND b.bought BETWEEN s.clicked AND s.clicked + INTERVAL 10 MINUTES",
        ["1 00:05", "4 00:34"],
        ("join.chain",),
        before={"clicked_ads": f"SELECT a.ad, a.shown, c.clicked FROM ads a JOIN clicks c {_ON}"},
    ),
    Case(
        "aggregated_then_joined",
        "SELECT date_format(a.window.start, 'HH:mm'), a.ad, a.n, c.n FROM ads_counted a JOIN clicks_counted c"
        " ON a.ad = c.ad AND a.window = c.window",
        ["00:00 1 1 1", "00:30 4 1 1"],
        ("join.after-aggregation",),
        before={
            "ads_counted": "SELECT window, ad, count(*) AS n FROM ads GROUP BY window(shown, '10 minutes'), ad",
            "clicks_counted": "SELECT window, ad, count(*) AS n FROM clicks GROUP BY window(clicked, '10 minutes'), ad",
        },
    ),
    Case(
        "joined_then_aggregated",
        "SELECT date_format(window.start, 'HH:mm'), count(*), count(clicked) FROM perhaps_clicked"
        " GROUP BY window(shown, '30 minutes')",
        ["00:00 3 1", "00:30 1 1"],
        ("join.before-aggregation",),
        before={"perhaps_clicked": f"SELECT a.ad, a.shown, c.clicked FROM ads a LEFT JOIN clicks c {_ON}"},
    ),
)
_NAMED = ["1 one", "2 two"]
_UNNAMED = ["3 None", "4 None", "5 None", "6 None", "100 None"]  # nothing is late where nothing is kept
STATIC = (
    Case("static_inner", "SELECT ad, name FROM ads JOIN named USING (ad)", _NAMED, ("join.static.inner",)),
    Case(
        "static_left_outer",
        "SELECT a.ad, n.name FROM ads a LEFT JOIN named n ON a.ad = n.ad",
        [*_NAMED, *_UNNAMED],
        ("join.static.outer",),
    ),
    Case("static_semi", "SELECT ad FROM ads LEFT SEMI JOIN named USING (ad)", ["1", "2"], ("join.static.semi",)),
    Case(
        "static_first",
        "SELECT a.ad, n.name FROM named n JOIN ads a ON a.ad = n.ad",
        _NAMED,
        ("join.static.left",),
    ),
    Case(
        "static_first_right_outer",
        "SELECT a.ad, n.name FROM named n RIGHT JOIN ads a ON a.ad = n.ad",
        [*_NAMED, *_UNNAMED],
        ("join.static.left", "join.static.stateless"),
    ),
)


def ran(cases, name, project_at, run_once):
    root = project_at(pipeline(name, SOURCES, cases), files=ROWS, settings=SETTINGS)
    in_order(root, ROWS)
    result = run_once(root)
    assert result.ok, result.problems
    assert {case.name: rows_of(case) for case in cases} == {case.name: sorted(case.rows) for case in cases}
    return result


@pytest.mark.covers(*sorted({feature for case in STREAMS for feature in case.covers}))
def test_streams_with_streams(project_at, run_once):
    result = ran(STREAMS, "joins", project_at, run_once)
    assert late_of(STREAMS[0], result.queries) == STREAMS[0].late
    kept = {query.name: query.last.state_rows for query in result.queries}
    # Rows that no match can come for any more are forgotten; without a watermark none is.
    assert (kept["inner_"], kept["unbounded"]) == (2, 12)


@pytest.mark.covers(*sorted({feature for case in STATIC for feature in case.covers}))
def test_streams_with_tables(project_at, run_once):
    result = ran(STATIC, "static_joins", project_at, run_once)
    assert [query.last.state_rows for query in result.queries] == [None] * len(STATIC)
