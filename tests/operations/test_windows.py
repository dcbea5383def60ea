"""Windows of every kind over one stream with disorder, a duplicate and rows that come too late."""

from __future__ import annotations

import pytest

from tests.operations.cases import SETTINGS, Case, files, in_order, late_of, pipeline, rows_of

pytestmark = pytest.mark.spark

SOURCES = """
visits:
  type: files
  path: visits
  max_files_per_trigger: 1
  format: {type: csv, schema: "at TIMESTAMP, who STRING, n INT"}
  watermark: {column: at, delay: 10 minutes}
unmarked:
  type: files
  path: visits
  max_files_per_trigger: 1
  format: {type: csv, schema: "at TIMESTAMP, who STRING, n INT"}
"""
VISITS = files(
    "visits",
    "00:01,a,1 | 00:04,a,2 | 00:06,b,3",
    "00:03,a,4 | 00:01,a,1 | 00:12,a,5",
    "00:40,a,6",
    "12:00,end,0",
    "00:02,a,7 | 00:02,a,8",  # late: the batch before had a watermark of 00:30
)
_OF_FIVE = "SELECT window AS five, who, sum(n) AS n FROM visits GROUP BY window(at, '5 minutes'), who"
_START = "date_format(window.start, 'HH:mm') AS start"
CASES = (
    Case(
        "tumbling",
        f"SELECT {_START}, who, sum(n) FROM visits GROUP BY window(at, '10 minutes'), who",
        ["00:00 a 8", "00:00 b 3", "00:10 a 5", "00:40 a 6"],
        ("window.tumbling", "late.counted", "late.dropped", "late.append", "late.state-removed"),
        late=(0, 1),  # two rows of one window and key, in one group
    ),
    Case(
        "sliding",
        f"SELECT {_START}, who, sum(n) FROM visits GROUP BY window(at, '10 minutes', '5 minutes'), who",
        ["00:00 a 8", "00:00 b 3", "00:05 a 5", "00:05 b 3", "00:10 a 5", "00:35 a 6", "00:40 a 6", "23:55 a 8"],
        ("window.sliding",),
    ),
    Case(
        "session",
        "SELECT date_format(session_window.start, 'HH:mm'), date_format(session_window.end, 'HH:mm'), who, sum(n)"
        " FROM visits GROUP BY session_window(at, '5 minutes'), who",
        ["00:01 00:09 a 8", "00:06 00:11 b 3", "00:12 00:17 a 5", "00:40 00:45 a 6"],
        ("window.session",),
        late=(0, 1),
    ),
    Case(
        "session_merged",
        "SELECT date_format(session_window.start, 'HH:mm'), date_format(session_window.end, 'HH:mm'), who, sum(n)"
        " FROM visits GROUP BY session_window(at, '5 minutes'), who",
        ["00:01 00:09 a 8", "00:06 00:11 b 3", "00:12 00:17 a 5", "00:40 00:45 a 6"],
        ("window.session.partial",),
        late=(0, 1),
        settings="{spark: {spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition: true}}",
    ),
    Case(
        "dynamic",
        "SELECT date_format(session_window.start, 'HH:mm'), date_format(session_window.end, 'HH:mm'), who, sum(n)"
        " FROM visits GROUP BY session_window(at, CASE WHEN n >= 5 THEN '1 minute' WHEN n = 3 THEN '0 seconds'"
        " ELSE '5 minutes' END), who",
        ["00:01 00:09 a 8", "00:12 00:13 a 5", "00:40 00:41 a 6"],
        ("window.session.dynamic",),
    ),
    Case(
        "of_window_time",
        f"SELECT {_START}, count(*), sum(n) FROM of_five GROUP BY window(window_time(five), '10 minutes')",
        ["00:00 2 11", "00:10 1 5", "00:40 1 6"],
        ("window.time",),
        before={"of_five": _OF_FIVE},
    ),
    Case(
        "of_window",
        "SELECT date_format(again.start, 'HH:mm'), count(*), sum(n)"
        f" FROM (SELECT window(five, '10 minutes') AS again, n FROM ({_OF_FIVE})) GROUP BY again",
        ["00:00 2 11", "00:10 1 5", "00:40 1 6"],
        ("window.of-window",),
    ),
    Case(
        "single_then_windows",
        f"SELECT {_START}, sum(n), count(*) FROM single GROUP BY window(window_time(ten), '20 minutes')",
        ["00:00 15 3", "00:40 6 1"],
        ("window.of-window",),
        before={
            "apart": "deduplicate: {of: visits}",
            "single": "SELECT window AS ten, who, sum(n) AS n FROM apart GROUP BY window(at, '10 minutes'), who",
        },
        late=(2, 0),  # the first of the three operators sees rows, and the others nothing late
    ),
    Case(
        "clause",
        f"SELECT {_START}, who, sum(n) FROM unmarked WATERMARK at DELAY OF INTERVAL 10 MINUTES"
        " GROUP BY window(at, '10 minutes'), who",
        ["00:00 a 8", "00:00 b 3", "00:10 a 5", "00:40 a 6"],
        late=(0, 1),
    ),
    Case(
        "clause_on_expression",
        f"SELECT {_START}, sum(n) FROM unmarked WATERMARK date_trunc('minute', at) AS minute"
        " DELAY OF INTERVAL '10' MINUTE AS v WHERE v.who = 'a' GROUP BY window(minute, '10 minutes')",
        ["00:00 8", "00:10 5"],
    ),
)


@pytest.mark.covers(*sorted({feature for case in CASES for feature in case.covers}))
def test_windows(project_at, run_once):
    root = project_at(pipeline("windows", SOURCES, CASES), files=VISITS, settings=SETTINGS)
    in_order(root, VISITS)
    result = run_once(root)
    assert result.ok, result.problems
    assert {case.name: rows_of(case) for case in CASES} == {case.name: sorted(case.rows) for case in CASES}
    told = [case for case in CASES if case.late]
    assert {case.name: late_of(case, result.queries) for case in told} == {case.name: case.late for case in told}
    # Of all windows only the last is left in state: the others are closed.
    assert next(query for query in result.queries if query.name == "tumbling").last.state_rows == 1
