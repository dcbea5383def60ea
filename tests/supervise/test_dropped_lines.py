"""A CSV line of NULs, which Spark drops as blank, stops the query or is counted."""

from __future__ import annotations

import json

import pytest

from penstock.problems import errors_in
from penstock.screens.event_lines import in_one_line
from penstock.screens.query_words import sum_words
from penstock.supervise import events
from penstock.supervise.query_view import QueryView, fold

PIPELINE = """
    pipeline: %(name)s
    sources:
      rows:
        type: files
        path: in
        format: {type: csv, header: true, schema: "id BIGINT, name STRING"}
        on_bad_record: %(name)s
    sinks: {out: {of: rows, type: files, path: out/%(name)s, format: json}}
"""


AT = {"pipeline": "p", "query": "q", "at": 0.0}


def test_what_was_passed_over_is_counted_and_has_a_line():
    lines = events.LinesDropped(source="rows", batch=3, file="a.csv", lines=(3, 9), message="line 3 of `a.csv`", **AT)
    files = events.FilesPassedOver(source="rows", batch=3, files=2, example="in/a", **AT)
    view = QueryView("p", "q", "id", "exactly-once", bad_rows=1, checks={"rows.decoded": 1})
    for event in (lines, files):
        view = fold(view, event)
    assert (view.bad_rows, view.checks, view.missing_files) == (3, {"rows.decoded": 3}, 2)
    assert sum_words(view)[-2:] == ["3 bad", "2 files missing"]
    assert in_one_line(lines) == "p.q line 3 of `a.csv`"
    passed = "p.q source `rows` passed over `in/a` (and 1 more): deleted before batch 3 could read it"
    assert in_one_line(files) == passed
    assert json.loads(json.dumps(lines.to_json()))["lines"] == [3, 9]


@pytest.mark.spark
def test_a_line_of_nuls_is_a_bad_record(project_at, run_once, spark):
    pipelines = [PIPELINE % {"name": name} for name in ("fail", "drop", "dead_letter")]
    lines = "id,name\n1,a\n\0\0\0\n\n2,b\nx,c\n"
    root = project_at(*pipelines, files={"in/a.csv": lines, "in/b.csv": "id,name\n3,c\n\1\n"})
    result = run_once(root)
    data = {query.pipeline: query for query in result.queries if query.name == "rows"}
    # The bad record of the kind that Spark reports, and the two lines that it drops.
    for name in ("drop", "dead_letter"):
        assert (data[name].bad_rows, data[name].checks, data[name].state) == (3, {"rows.decoded": 3}, "done")
        assert sorted(row.id for row in spark.read.json(str(root / "out" / name)).collect()) == [1, 2, 3]
    assert data["dead_letter"].set_aside == {"rows": 1}
    assert {problem.code for problem in result.problems} == {"RECORD001"}

    (root / "in/a.csv").write_text(lines.replace("x,c\n", ""))
    (root / "pipelines/p1.yaml").unlink()
    (root / "pipelines/p2.yaml").unlink()
    result = run_once(root)
    (problem,) = errors_in(result.problems)
    assert (problem.code, problem.where and problem.where.line) == ("FILES014", 7)
    assert problem.message.startswith("line 3 of `")
    assert "/in/a.csv`" in problem.message
