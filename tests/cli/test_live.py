"""What a run looks like while it runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from penstock.actions.run import RunResult
from penstock.cli import live
from penstock.facts.observed import ProgressFacts, RecordTimes
from penstock.supervise.loop import QueryView, Snapshot

TIMES = {
    "clicks": RecordTimes(1, 3, 9, 40, 100, 0, 1),
    "orders": RecordTimes(2, 5, 36, 1_200, 100, 0, 1),
}
LAST = ProgressFacts("q", 3, "", 1_000, 990, 100.0, 200.0, 5_000, None, 0, None, times=TIMES)
TIMED = QueryView("p", "q", "1", "at-least-once", batches=4, rows_in=4_000, last=LAST, pause_ms=245)
UNTIMED = QueryView("p", "other", "2", "exactly-once", rows_in=10, last=replace(LAST, times={}))


def shown(*queries: QueryView) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(live.live_table(Snapshot(1.0, queries), once=False))
    return captured.get()


def test_a_timed_query_shows_how_late_its_records_came_and_the_pause_apart():
    header, timed, untimed, *_ = shown(TIMED, UNTIMED).splitlines()
    assert header.split()[-4:] == ["p50", "·", "p99", "pause"]
    assert timed.rstrip().endswith("2 ms · 36 ms  245 ms")
    assert untimed.split()[-2:] == ["–", "–"]


def test_without_a_timed_query_nothing_is_said_of_latency():
    assert "pause" not in shown(UNTIMED)
    assert "p99" not in shown(UNTIMED)


def test_rows_of_a_batch_under_way_are_seen_before_spark_reports_on_it():
    first = replace(UNTIMED, rows_in=0, last=None, under_way=1_234)
    assert "1,234" in shown(first)
    assert "567" in shown(replace(first, under_way_per_second=567.4))
    later = shown(replace(TIMED, under_way=500, under_way_per_second=99.6))
    assert "4,500" in later
    assert " 100 " in later


def test_a_line_tells_of_a_batch_and_never_of_one_under_way(capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr(live, "out", Console(width=300, color_system=None))
    view = live.PlainView()
    view.snapshot(Snapshot(1.0, (replace(TIMED, last=None, under_way=7),)))
    view.snapshot(Snapshot(2.0, (replace(TIMED, under_way=8),)))
    view.snapshot(Snapshot(3.0, (replace(TIMED, under_way=9),)))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("5.0 s · latency p50 2 ms, p95 5 ms, p99 36 ms, max 1.2 s · pause 245 ms")


def test_the_end_tells_of_rows_in_a_batch_that_did_not_end(capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr(live, "out", Console(width=300, color_system=None))
    live.show_end(RunResult((replace(TIMED, state="stopped", under_way=70),), started=True))
    assert "pause 245 ms · 70 rows in a batch that did not end" in capsys.readouterr().out


def test_json_has_the_latency_of_each_source():
    told = replace(TIMED, longest_pause_ms=400, under_way=70).to_json()
    assert told["latency"]["orders"]["p99_ms"] == 36
    assert (told["pause_ms"], told["longest_pause_ms"], told["rows_under_way"]) == (245, 400, 70)
    assert QueryView("p", "q", "1", "").to_json()["latency"] == {}
