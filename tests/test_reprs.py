"""What a prompt and a notebook show of pipelines, checks and runs. Without Spark."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from penstock import Pipeline, sinks, sources
from penstock.actions.check import CheckResult, QuerySummary
from penstock.actions.show import ShowResult
from penstock.problems import Problem, UserError, Where
from penstock.screens.html import check_html, run_html
from penstock.screens.reprs import run_text
from penstock.supervise.query_view import Snapshot
from tests.cli.test_live import NOW, a_run
from tests.conftest import place

HOSTILE = "<img src=x onerror=alert(1)>\"'&"


def orders() -> Pipeline:
    pipeline = Pipeline("orders", description=HOSTILE)
    pipeline.source("clicks", sources.Files(path="in", format="text"))
    pipeline.sql("pages", "SELECT value FROM clicks")
    pipeline.sql("titles", "SELECT value FROM pages")
    pipeline.sink("table", sinks.Files(path="out", format="json"), of="titles")
    pipeline.sink("seen", sinks.Memory(), of="pages")
    return pipeline


class Parsed(HTMLParser):
    """The tags and the texts of a page; open tags that are never closed raise."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def is_harmless(page: str) -> Parsed:
    """Nothing of a user's became a tag, nothing is fetched, and no colour is given to the page's own."""
    parsed = Parsed(page)
    assert set(parsed.tags) <= {"div", "span", "b", "table", "tr", "th", "td", "svg", "rect", "text", "path"}
    assert not any(name.startswith("on") or name in ("src", "href") for name, _ in parsed.attributes)
    assert not re.search(r"url\(|@import|background:(?!none)|[^-]color:(#000|#fff|black|white)", page)
    assert [value for _, value in parsed.attributes if value and "://" in value] in (
        [],
        ["http://www.w3.org/2000/svg"],
    )
    return parsed


def test_a_pipeline_at_the_prompt_is_its_graph_with_queries_and_promises():
    assert repr(orders()).splitlines() == [
        "Pipeline orders · latency balanced",
        "  clicks (files)",
        "  clicks → pages",
        "  pages → titles",
        "  titles → table (files)",
        "  pages → seen (memory)",
        *(line for line in repr(orders()).splitlines() if line.startswith("  query ")),
    ]
    assert "query titles → table (files) · append · exactly-once (" in repr(orders())
    assert "query pages → seen (memory) · append · none (" in repr(orders())


def test_a_pipeline_in_a_notebook_is_drawn_from_left_to_right():
    parsed = is_harmless(orders()._repr_html_())
    assert parsed.tags.count("rect") == 5
    assert parsed.tags.count("path") == 4
    assert HOSTILE in parsed.texts
    page = orders()._repr_html_()
    places = [float(re.search(rf'<text x="(\d+)"[^>]*>{name}<', page)[1]) for name in ("clicks", "pages", "titles")]
    assert places == sorted(places)
    assert len(set(places)) == 3


def test_a_pipeline_that_is_not_complete_shows_what_is_wrong():
    pipeline = Pipeline("orders", latency="quick")
    assert "error SPEC" in repr(pipeline)
    assert "fix:" in repr(pipeline)
    is_harmless(pipeline._repr_html_())
    result = pipeline.check(fast=True)
    assert not result.ok
    assert result.pipelines == ("orders",)


def test_a_cycle_is_drawn_too():
    pipeline = Pipeline("round")
    pipeline.source("lines", sources.Files(path="in", format="text"))
    pipeline.sql("a", "SELECT * FROM b JOIN lines")
    pipeline.sql("b", "SELECT * FROM a")
    pipeline.sink("out", sinks.Memory(), of="a")
    is_harmless(pipeline._repr_html_())
    assert "GRAPH" in repr(pipeline.check(fast=True))


def test_a_fast_check_finds_problems_and_never_raises(tmp_path):
    place(tmp_path / "in" / "1.txt", "a")
    good = orders().check(project=tmp_path, fast=True)
    assert good.ok, good
    assert repr(good).startswith("✓ orders: no problems (fast: without Spark)\n")
    pipeline = orders()
    pipeline.sink("lost", sinks.Memory(), of="nowhere")
    result = pipeline.check(project=tmp_path, fast=True)
    assert not result.ok
    assert re.match(r"✗ orders: 1 error\nerror \w+\d+  .*nowhere.*\n  tests/test_reprs.py:\d+:1\n  fix: ", repr(result))
    place(tmp_path / "penstock.yaml", "nme: x\n")
    assert [problem.where.file for problem in orders().check(project=tmp_path, fast=True).problems] == ["penstock.yaml"]


def test_what_users_wrote_is_text_wherever_it_is_shown():
    problem = Problem("RUN001", HOSTILE, HOSTILE, Where(HOSTILE, 1))
    checked = CheckResult((HOSTILE,), (QuerySummary(*[HOSTILE] * 6),), (problem,), fast=False)
    assert HOSTILE in is_harmless(check_html(checked)).texts[1:]
    fine = replace(checked, problems=())
    assert is_harmless(check_html(fine)).texts.count(HOSTILE) >= 3
    views = tuple(replace(view, pipeline=HOSTILE, name=HOSTILE, promise=HOSTILE) for view in a_run().queries)
    failed = replace(views[3], problem=problem)
    away = {HOSTILE: replace(views[2].away["orders"], problem=problem)}
    parsed = is_harmless(run_html(Snapshot(1.0, (*views[:2], replace(views[2], away=away), failed)), NOW))
    assert parsed.texts.count(HOSTILE) >= 8


def test_a_run_at_the_prompt_and_in_a_notebook():
    text = run_text(a_run(), NOW)
    assert "● clicks.clicks_per_page running: 1 batch · 48,120 rows in" in text
    assert "1,480 behind · exactly-once" in text
    assert "restarts in 5 s (restart 3)" in text
    assert "fix: use `try_cast(amount AS DOUBLE)`" in text
    page = is_harmless(run_html(a_run(), NOW))
    for cell in ("● running", "1,480 (2 s)", "48,120", "✗ failed", "late", "dead letters", "restarts"):
        assert cell in page.texts


def test_no_secret_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("PG_PASSWORD", "hunter2")
    place(tmp_path / "penstock.yaml", "name: x\nsecrets: [PG_PASSWORD]\n")
    place(tmp_path / "in" / "1.txt", "a")
    pipeline = orders()
    pipeline.sql("kept", "SELECT value FROM clicks")
    pipeline.sink("pg", sinks.Postgres(url="postgresql://u:${PG_PASSWORD}@127.0.0.1:1/db", table="t"), of="kept")
    result = pipeline.check(project=tmp_path, offline=False)  # the database is not there, so Spark is not started
    assert [problem.code for problem in result.problems] == ["POSTGRES001"]
    shown = (repr(pipeline), pipeline._repr_html_(), repr(result), result._repr_html_())
    assert "hunter2" not in "".join(shown)


def test_an_excerpt_shows_the_line_unless_it_may_hold_a_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    place(tmp_path / "p.yaml", "a: 1\nb: [2]\npassword: hunter2\n")
    lines = UserError(Problem("X001", "wrong", "fix it", Where("p.yaml", 2, 4)))._render_traceback_()
    assert lines == ["error X001  wrong", "  p.yaml:2:4", "  2 │ b: [2]", "    │    ^", "  fix: fix it"]
    for where in (Where("p.yaml", 3), Where("p.yaml", 9), Where("gone.yaml"), Where("In[3]")):
        assert len(UserError(Problem("X001", "wrong", "fix it", where))._render_traceback_()) == 3


def test_in_a_script_the_last_line_of_a_traceback_says_it_all():
    raised = UserError(Problem("MODE001", "`counts` cannot append", "write `mode: update`", Where("jobs.py", 7)))
    assert str(raised) == "jobs.py:7:1: MODE001 `counts` cannot append. Fix: write `mode: update`"


def test_shown_rows_keep_what_pandas_would_lose():
    columns = (
        ("id", "bigint"),
        ("x", "double"),
        ("y", "double"),
        ("at", "timestamp"),
        ("t", "string"),
        ("far", "timestamp"),
    )
    rows = (
        (2**62 + 1, 1.5, None, "2026-01-01 10:00:00.5", "a", "+12026-01-01 00:00:00"),
        (None, float("nan"), float("nan"), None, None, None),
    )
    table = ShowResult("s", columns, rows, sampled=False).to_pandas()
    assert list(table.columns) == ["id", "x", "y", "at", "t", "far"]
    assert list(map(str, table.dtypes)) == ["Int64", "float64", "object", "datetime64[us]", "object", "object"]
    assert int(table["id"][0]) == 2**62 + 1
    assert table["y"][0] is None
    assert str(table["at"][0]) == "2026-01-01 10:00:00.500000"
    assert table["far"][0] == "+12026-01-01 00:00:00"
    assert ShowResult("s", columns, (), sampled=False).to_pandas().empty


@pytest.mark.parametrize("value", [HOSTILE, "\x00", "表"])
def test_any_name_of_a_part_can_be_drawn(value):
    pipeline = Pipeline(value)
    is_harmless(pipeline._repr_html_())
    assert value in repr(pipeline)
