"""What a run looks like while it runs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyte
import pytest
from rich.console import Console
from rich.text import Text

from penstock.facts.observed import ProgressFacts, RecordTimes, Unread
from penstock.problems import Problem, Where
from penstock.screens.live_table import LiveTable, shortened
from penstock.screens.views import LiveView, PlainView, show_end
from penstock.supervise import events
from penstock.supervise.events import Event
from penstock.supervise.query_view import QueryView, Snapshot, fold

NOW = 1_790_000_000.0
SCREENS = Path(__file__).parent / "screens"
TIMES = {
    "clicks": RecordTimes(1, 3, 9, 40, 100, 0, 1),
    "orders": RecordTimes(2, 5, 36, 1_200, 100, 0, 1),
}
LAST = ProgressFacts("q", 3, "", 1_000, 990, 100.0, 200.0, 5_000, None, 0, None, times=TIMES)
TIMED = QueryView("p", "q", "1", "at-least-once", batches=4, rows_in=4_000, last=LAST, pause_ms=245)
UNTIMED = QueryView("p", "other", "2", "exactly-once", rows_in=10, last=replace(LAST, times={}))
AWAY = Problem(
    "KAFKA001",
    "the Kafka cluster at broker-1.orders.internal:9092 cannot be reached: Connection refused",
    "look at `servers`",
)
GAVE_UP = Problem(
    "RUN003",
    "batch 18 of `ledger` failed 3 times in the same way: [CAST_INVALID_INPUT] The value '12,50' of the type"
    ' "STRING" cannot be cast to "DOUBLE" (offsets of `payments`: 17000 to 18000)',
    "use `try_cast(amount AS DOUBLE)` in the step `ledger`, then run `penstock run payments`",
    Where("pipelines/payments.yaml", 14, 9),
)


def batch(number: int, rows_in: int, rows_out: int, duration_ms: int, **more: object) -> ProgressFacts:
    rate = rows_in * 1_000 / duration_ms
    given = {"watermark": None, "late_rows": 0, "state_rows": None} | more
    return ProgressFacts("q", number, "2026-09-21T13:06:00Z", rows_in, rows_out, rate, rate, duration_ms, **given)


def after(view: QueryView, kind: type[Event], seconds_ago: float, **given: object) -> QueryView:
    return fold(view, kind(pipeline=view.pipeline, query=view.name, at=NOW - seconds_ago, **given))


def a_run() -> Snapshot:
    """In a batch of 40 s with records that wait; with dead letters; restarting; given up."""
    busy = QueryView("clicks", "clicks_per_page", "1", "exactly-once")
    done = batch(211, 48_120, 1_377, 39_800, watermark="2026-09-21T13:05:10.000Z", behind=0.0, late_groups=12)
    busy = after(busy, events.BatchDone, 38, progress=done)
    busy = after(busy, events.LagSeen, 2, unread={"clicks": Unread(1_480, "record")})
    malformed = QueryView("clicks", "malformed", "2", "exactly-once")
    judged = {"clicks": {"rows": 50_010, "refused": 31, "dead_letters": 31}}
    malformed = after(malformed, events.BatchDone, 2, progress=batch(211, 50_010, 31, 820, behind=0.0, checks=judged))
    malformed = after(malformed, events.Idle, 1)
    malformed = after(malformed, events.LagSeen, 1, unread={"clicks": Unread(0, "record")})
    revenue = QueryView("orders", "revenue_per_minute_and_region", "3", "exactly-once")
    done = batch(1_204, 120_400, 300, 2_140, watermark="2026-09-21T13:04:58.000Z", behind=310.0, late_groups=4)
    revenue = after(revenue, events.BatchDone, 40, progress=done)
    revenue = after(revenue, events.LagSeen, 23, unread={"orders": Unread(2_950, "record")})
    revenue = after(revenue, events.Away, 21, node="orders", side="source", problem=AWAY)
    revenue = after(revenue, events.Restarting, 4, reason=AWAY.message, delay_seconds=9.0, number=3)
    ledger = QueryView("payments", "ledger", "4", "exactly-once")
    ledger = after(ledger, events.BatchDone, 90, progress=batch(17, 2_000, 2_000, 1_300))
    ledger = after(ledger, events.Stopped, 60, state="failed", problem=GAVE_UP)
    return Snapshot(4_215.0, (busy, malformed, revenue, ledger))


def drawn(snapshot: Snapshot, width: int = 200, once: bool = False, height: int = 40) -> str:
    console = Console(width=width, height=height, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(LiveTable(snapshot, once=once, now=NOW))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def shown(*queries: QueryView) -> str:
    return drawn(Snapshot(1.0, queries))


@pytest.mark.parametrize("width", [80, 110, 200])
def test_the_view_of_a_run_fits_its_width(width):
    told = drawn(a_run(), width)
    assert told == (SCREENS / f"run-{width}.txt").read_text(encoding="utf-8")
    assert max(map(len, told.splitlines())) <= width
    assert "…" not in told


@pytest.mark.parametrize("width", range(40, 201, 7))
def test_no_cell_is_cut_at_any_width(width):
    """Every word that is drawn is one of the widest screen, or the beginning of a name that ends between words."""
    snapshot = a_run()
    whole = set(drawn(snapshot, 400).split()) | {"clicks", "orders", "payments", "malformed", "ledger"}
    whole |= {name for query in snapshot.queries for name in (query.name, query.pipeline)}
    for word in drawn(snapshot, width).split():
        if word in whole:
            continue
        assert word.endswith("…"), word
        name = word.removesuffix("…")
        assert name.endswith("_"), word
        assert any(query.name.startswith(name) for query in snapshot.queries)


def test_columns_give_way_by_rank():
    def columns(width: int) -> set[str]:
        return set(re.split(r" {2,}", drawn(a_run(), width).splitlines()[0].strip()))

    assert columns(200) > columns(110) > columns(80) >= {"query", "state", "behind", "late", "bad"}
    assert "dead letters" in columns(110)
    assert "watermark (UTC)" in columns(200)


def test_lag_is_that_of_now_and_not_of_the_last_batch():
    busy = a_run().queries[0]
    assert busy.last is not None
    assert busy.last.behind == 0.0
    assert "1,480 (2 s)" in shown(busy)
    assert "0 (" in shown(replace(busy, lag={}, lag_at=None))  # what Spark knew, with its age
    files = after(busy, events.LagSeen, 0, unread={"a": Unread(1, "file"), "b": Unread(2, "record")})
    assert "1 file + 2 (0 s)" in shown(files)
    assert "1,480" not in shown(replace(busy, state="done"))


def test_rows_that_a_real_time_batch_has_read_wait_no_more():
    assert "1,400 (2 s)" in shown(replace(a_run().queries[0], under_way=80))


def test_columns_on_mishaps_are_there_when_there_are_some():
    header = shown(UNTIMED).splitlines()[0]
    assert not any(word in header for word in ("bad", "late", "dead letters", "restarts", "p99", "pause", "taken"))
    assert "late" in shown(replace(UNTIMED, late_rows=3)).splitlines()[0]
    assert "dead letters" in shown(replace(UNTIMED, set_aside={"x": 2})).splitlines()[0]
    assert "restarts" in shown(replace(UNTIMED, restarts=1)).splitlines()[0]


def test_a_query_whose_source_is_away_says_so_with_the_reason():
    away = after(UNTIMED, events.Away, 5, node="orders", side="source", problem=AWAY)
    told = shown(away)
    assert "▲ away" in told
    assert f"p.other source `orders` has been away for 5 s: {AWAY.message}" in told
    assert "away" not in shown(after(away, events.Back, 0, node="orders", side="source", seconds=5.0))


def test_names_are_cut_between_words():
    assert shortened("revenue_per_minute", 18) == "revenue_per_minute"
    assert shortened("revenue_per_minute", 17) == "revenue_per_…"
    assert shortened("revenue_per_minute", 12) == "revenue_…"
    assert shortened("revenueperminute", 8) == "revenue…"


def test_what_is_not_well_is_seen_where_not_all_queries_fit():
    many = [replace(UNTIMED, name=f"query_{number}") for number in range(60)]
    many[50] = after(many[50], events.Stopped, 1, state="failed", problem=GAVE_UP)
    told = drawn(Snapshot(1.0, tuple(many)), 100, height=24)
    assert "query_50" in told
    assert "RUN003" in told
    assert re.search(r"and \d+ queries more that run well", told)


def test_a_run_with_an_end_shows_how_much_is_taken():
    told = drawn(Snapshot(1.0, (replace(UNTIMED, share=0.5),)), 80, once=True)
    assert "━━━━━━╌╌╌╌╌╌  50%" in told


def test_names_and_messages_are_no_markup():
    hostile = replace(
        UNTIMED, name="[red]x[/red]", state="restarting", restarting_because="[link=http://x]", restarts_at=NOW
    )
    assert "[red]x[/red]" in shown(hostile)
    assert "[link=http://x]" in shown(hostile)


def test_a_timed_query_shows_how_late_its_records_came_and_the_pause_apart():
    header, timed, untimed, *_ = shown(TIMED, UNTIMED).splitlines()
    assert header.split()[-4:] == ["p50", "·", "p99", "pause"]
    assert timed.endswith("2 ms · 36 ms  245 ms")
    assert untimed.split()[-2:] == ["–", "–"]


def test_rows_of_a_batch_under_way_are_seen_before_spark_reports_on_it():
    first = replace(UNTIMED, rows_in=0, last=None, under_way=1_234)
    assert "1,234" in shown(first)
    assert "567" in shown(replace(first, under_way_per_second=567.4))
    later = shown(replace(TIMED, under_way=500, under_way_per_second=99.6))
    assert "4,500" in later
    assert " 100 " in later


class Terminal(io.StringIO):
    """What a terminal shows of what is written to it."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__()
        self.screen = pyte.Screen(columns, lines)
        self.screen.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self.screen)

    def write(self, text: str) -> int:
        self._stream.feed(text)
        return len(text)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]


@pytest.mark.parametrize(("before", "now"), [(110, 80), (80, 200), (200, 110)])
def test_after_a_resize_the_table_is_there_once_and_fits(before, now):
    terminal = Terminal(before, 30)
    console = Console(file=terminal, width=before, height=30, force_terminal=True, color_system=None)
    view = LiveView(console, once=False)
    live = view._live
    live.auto_refresh = False
    with view:
        view.preparing()
        view.event(events.SchemaChanged(pipeline="p", query="q", at=NOW, source="orders"))
        console.print("printed by a script")
        live.update(LiveTable(a_run(), False, NOW), refresh=True)
        assert sum("query " in line for line in terminal.text) == 1
        # As many terminals do: what no longer fits goes on in the next line.
        terminal.screen.reset()
        terminal.screen.set_mode(pyte.modes.LNM)
        for line in drawn(a_run(), before).splitlines():
            terminal.write(f"{line}\r\n")
        terminal.screen.resize(30, now - 7)
        console.size = (now - 7, 30)
        live.refresh()
        terminal.screen.resize(30, now)
        console.size = (now, 30)
        live.refresh()
        told = terminal.text
        live.refresh()
        assert terminal.text == told
    assert sum(line.startswith("query ") for line in told) == 1
    assert sum("has a new schema" in line for line in told) == 1
    assert sum("printed by a script" in line for line in told) == 1
    table = drawn(a_run(), now, height=30).splitlines()
    start = next(index for index, line in enumerate(told) if line.startswith("query "))
    assert told[start : start + len(table)] == table


def plain(clock: Callable[[], float] = lambda: NOW) -> tuple[PlainView, io.StringIO]:
    printed = io.StringIO()
    return PlainView(Console(width=80, color_system=None, file=printed), clock), printed


def test_a_line_tells_of_a_batch_and_never_of_one_under_way():
    view, printed = plain()
    view.snapshot(Snapshot(1.0, (replace(TIMED, last=None, under_way=7),)))
    view.snapshot(Snapshot(2.0, (replace(TIMED, under_way=8),)))
    view.snapshot(Snapshot(3.0, (replace(TIMED, under_way=9),)))
    (line,) = printed.getvalue().splitlines()
    assert line.endswith("5.0 s · latency p50 2 ms, p95 5 ms, p99 36 ms, max 1.2 s · pause 245 ms")


def test_without_a_terminal_a_line_says_that_a_query_has_started():
    view, printed = plain()
    view.event(events.QueryStarted(pipeline="p", query="q", at=NOW, id="1", run="2", promise="exactly-once"))
    view.event(events.Working(pipeline="p", query="q", at=NOW))
    view.event(events.Stopped(pipeline="p", query="q", at=NOW, state="failed", problem=GAVE_UP))
    started, gave_up = printed.getvalue().splitlines()
    assert started.endswith("p.q started · exactly-once")
    assert "p.q gave up: RUN003 batch 18" in gave_up


def test_without_a_terminal_each_30_seconds_a_line_says_how_every_query_is():
    now = [NOW - 31]
    view, printed = plain(lambda: now[0])
    for now[0] in (NOW - 31, NOW - 2, NOW, NOW + 0.2, NOW + 29.8):
        view.snapshot(a_run())
    lines = [line for line in printed.getvalue().splitlines() if not re.search(r" batch \d", line)]
    assert [line.partition(" ")[2] for line in lines] == [
        "clicks.clicks_per_page running · 1 batch · 48,120 rows in · 1,377 out · 12 groups late"
        " · 1,480 behind (2 s ago) · watermark 2026-09-21 13:05:10",
        "clicks.malformed waiting · 1 batch · 50,010 rows in · 31 out · 31 bad · 0 behind (1 s ago)",
        "orders.revenue_per_minute_and_region restarting · 1 batch · 120,400 rows in · 300 out · 4 groups late"
        " · 3 restarts · 2,950 behind (23 s ago) · watermark 2026-09-21 13:04:58",
    ]


def test_the_end_tells_of_rows_in_a_batch_that_did_not_end():
    printed = io.StringIO()
    show_end((replace(TIMED, state="stopped", under_way=70),), Console(width=300, color_system=None, file=printed))
    assert "pause 245 ms · 70 rows in a batch that did not end" in printed.getvalue()


def test_json_has_the_latency_of_each_source():
    told = replace(TIMED, longest_pause_ms=400, under_way=70).to_json()
    assert told["latency"]["orders"]["p99_ms"] == 36
    assert (told["pause_ms"], told["longest_pause_ms"], told["rows_under_way"]) == (245, 400, 70)
    assert QueryView("p", "q", "1", "").to_json()["latency"] == {}
    assert a_run().queries[0].to_json()["lag"] == {"clicks": {"count": 1_480, "unit": "record"}}


def test_every_style_is_known_to_rich():
    """A state without a mark or style would raise in the middle of a run."""
    states = ("starting", "running", "waiting", "restarting", "stopping", "done", "stopped", "failed")
    told = shown(*(replace(UNTIMED, name=state, state=state) for state in states))
    assert all(f" {state}" in told for state in states)
    assert Text(told)
