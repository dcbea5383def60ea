"""The table of a run. It is laid out when it is drawn, so it fits the terminal after each resize."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.notation.counts import counted
from penstock.notation.durations import to_words
from penstock.screens.query_words import NONE, STATE_MARK, lag_words, notes_on, state_of, watermark_of

if TYPE_CHECKING:
    from penstock.problems import Problem
    from penstock.supervise.query_view import QueryView, Snapshot

STATE_STYLE = {
    "running": "bold green",
    "waiting": "green",
    "starting": "dim",
    "away": "bold yellow",
    "restarting": "bold yellow",
    "stopping": "yellow",
    "done": "bold green",
    "stopped": "yellow",
    "failed": "bold red",
}
HOW_TO_STOP = "Ctrl-C stops"
_GAP = 2
_LEAST_NAME = 12
_BAR = 12
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MOST_PROBLEMS = 3
_WORD_ENDS = re.compile(r"(?<=[_.\-])")
_READING = ("running", "waiting", "stopping")
_NOT_WELL = ("failed", "away", "restarting", "stopping")

Cell = Callable[["QueryView"], str]


@dataclass(frozen=True)
class Shown:
    """A column: what it is called, what it shows, and how soon it gives way where there is no room."""

    header: str
    cell: Cell
    rank: int
    """The highest gives way first. 0 stays."""
    style: str = ""
    is_text: bool = False


class LiveTable:
    """Per query: state, lag with its age, rows, times. Columns that do not fit are left out, the least needed first.

    Under it: why a query restarts or is away, and the Problem of one that gave up.
    """

    def __init__(self, snapshot: Snapshot, once: bool, now: float, how_to_stop: str = HOW_TO_STOP) -> None:
        self._snapshot, self._once, self._now, self._how_to_stop = snapshot, once, now, how_to_stop

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        queries, hidden = self._queries_for(options.height or console.height)
        yield from self._table(queries, options.max_width)
        if hidden:
            yield Text(f"and {counted(hidden, 'query')} more that run well", style="dim")
        notes = list(self._notes(queries))
        yield from (Text(""), *notes, Text("")) if notes else ()
        yield self._footer()

    def _queries_for(self, height: int) -> tuple[list[QueryView], int]:
        """Those that are not well come first where not all fit on the screen."""
        queries = list(self._snapshot.queries)
        room = max(3, height - 4)
        if len(queries) <= room:
            return queries, 0
        ranked = sorted(queries, key=lambda query: state_of(query) not in _NOT_WELL)
        kept = {id(query) for query in ranked[: room - 1]}
        shown = [query for query in queries if id(query) in kept]
        return shown, len(queries) - len(shown)

    def _table(self, queries: Sequence[QueryView], width: int) -> Iterator[Table]:
        """With `pipeline.query` if that leaves room for what matters, else each pipeline above its queries."""
        columns = list(_columns(queries, self._once, self._now))
        flat = max((len(query.pipeline) + 1 + len(query.name) for query in queries), default=0)
        kept = _fitting(columns, queries, width - max(flat, _LEAST_NAME))
        several = len({query.pipeline for query in queries}) > 1
        grouped = any(column.rank <= _ESSENTIAL and column not in kept for column in columns)
        if grouped:
            indent = 2 if several else 0
            short = max((indent + len(query.name) for query in queries), default=0)
            needed = sum(_width(column, queries) + _GAP for column in columns if column.rank <= 1)
            # A long name gives way to the state and the lag.
            kept = _fitting(columns, queries, width - max(min(short, width - needed), _LEAST_NAME))
        room = width - sum(_width(column, queries) + _GAP for column in kept)
        yield _drawn(queries, kept, "" if grouped else ".", max(room, _LEAST_NAME), several and grouped)

    def _notes(self, queries: Sequence[QueryView]) -> Iterator[Text | Padding]:
        for query in queries:
            for state, said in notes_on(query, self._now):
                yield Text.assemble((f"{STATE_MARK[state]} ", STATE_STYLE[state]), said)
        problems = list(dict.fromkeys(query.problem for query in self._snapshot.queries if query.problem))
        for problem in problems[:_MOST_PROBLEMS]:
            yield from problem_lines(problem)
        if len(problems) > _MOST_PROBLEMS:
            yield Text(f"and {counted(len(problems) - _MOST_PROBLEMS, 'problem')} more", style="dim")

    def _footer(self) -> Text:
        snapshot = self._snapshot
        states = Counter(state_of(query) for query in snapshot.queries)
        said = ", ".join(f"{count} {state}" for state, count in states.items()) if len(snapshot.queries) > 1 else ""
        note = (
            "stopping: batches under way commit first; Ctrl-C again ends at once"
            if snapshot.stopping
            else self._how_to_stop
        )
        frame = _SPINNER[int(snapshot.elapsed_seconds * 5) % len(_SPINNER)]
        words = " · ".join(filter(None, (to_words(snapshot.elapsed_seconds * 1_000), said, note)))
        return Text(f"{frame} {words}", style="dim")


def problem_lines(problem: Problem) -> Iterator[Text | Padding]:
    """What is wrong, where, and the fix, wrapped between words."""
    style = "bold red" if problem.severity == "error" else "bold yellow"
    yield Text.assemble((f"{problem.severity} ", style), (problem.code, "bold"), f"  {problem.message}")
    if problem.where and problem.where.file:
        yield Padding(Text(str(problem.where), style="cyan"), (0, 0, 0, 2), expand=False)
    yield Padding(Text.assemble(("fix: ", "bold green"), problem.fix), (0, 0, 0, 2), expand=False)


_ESSENTIAL = 3
"""Columns up to this rank are worth a shorter name of the query."""


def _columns(queries: Sequence[QueryView], once: bool, now: float) -> Iterator[Shown]:
    """From left to right. Those on mishaps are there when there are some."""
    yield Shown("state", _state, 0, is_text=True)
    if once:
        yield Shown("taken", _bar, 1, is_text=True)
    yield Shown("behind", lambda query: lag_words(query, now), 1)
    yield Shown("in/s", _in_rate, 2)
    yield Shown("out/s", _out_rate, 8)
    if any(query.bad_rows for query in queries):
        yield Shown("bad", lambda query: _count(query.bad_rows), 3, "yellow")
    if any(_late(query) for query in queries):
        yield Shown("late", lambda query: _count(_late(query)), 3, "yellow")
    if any(_dead_letters(query) for query in queries):
        yield Shown("dead letters", lambda query: _count(_dead_letters(query)), 5, "yellow")
    if any(query.restarts for query in queries):
        yield Shown("restarts", lambda query: _count(query.restarts), 6, "yellow")
    yield Shown("rows in", _rows_in, 4)
    yield Shown("rows out", lambda query: f"{query.rows_out:,}" if query.last else NONE, 9)
    yield Shown("batch", lambda query: f"{query.last.batch:,}" if query.last else NONE, 10)
    yield Shown("last batch", lambda query: to_words(query.last.duration_ms) if query.last else NONE, 5)
    yield Shown("watermark (UTC)", watermark_of, 7, is_text=True)
    if any(query.last and query.last.times for query in queries):
        yield Shown("p50 · p99", _latency, 4)
        yield Shown("pause", lambda query: NONE if query.pause_ms is None else to_words(query.pause_ms), 6)


def _fitting(columns: Sequence[Shown], queries: Sequence[QueryView], room: int) -> list[Shown]:
    """Drops by rank until the rest fits; of two of one rank the right one goes first."""
    kept = list(columns)
    while sum(_width(column, queries) + _GAP for column in kept) > room:
        worst = max(range(len(kept)), key=lambda index: (kept[index].rank, index), default=0)
        if not kept or kept[worst].rank == 0:
            break
        del kept[worst]
    return kept


def _width(column: Shown, queries: Sequence[QueryView]) -> int:
    return max(Text(text).cell_len for text in (column.header, *(column.cell(query) for query in queries)))


def _drawn(queries: Sequence[QueryView], columns: Sequence[Shown], dot: str, room: int, with_pipelines: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0), collapse_padding=True)
    table.add_column("query", no_wrap=True)
    for column in columns:
        justify: Literal["left", "right"] = "left" if column.is_text else "right"
        table.add_column(column.header, justify=justify, no_wrap=True, min_width=_width(column, queries))
    above = None
    for query in queries:
        if with_pipelines and query.pipeline != above:
            above = query.pipeline
            table.add_row(Text(shortened(above, room), style="dim"))
        prefix = f"{query.pipeline}{dot}" if dot else "  " if with_pipelines else ""
        label = Text.assemble((prefix, "dim"), (shortened(query.name, room - len(prefix)), "bold"))
        table.add_row(label, *(_cell(column, query) for column in columns))
    return table


def shortened(name: str, room: int) -> str:
    """A name that fits, cut between its words: `revenue_per_…`. Only one long word is cut inside."""
    if len(name) <= room:
        return name
    kept = ""
    for part in _WORD_ENDS.split(name):
        if len(kept) + len(part) + 1 > room:
            break
        kept += part
    return f"{kept or name[: max(1, room - 1)]}…"


def _cell(column: Shown, query: QueryView) -> Text:
    text = column.cell(query)
    if column.header == "state":
        return Text(text, style=STATE_STYLE[state_of(query)])
    return Text(text, style="dim" if text == NONE else column.style)


def _state(query: QueryView) -> str:
    state = state_of(query)
    return f"{STATE_MARK[state]} {state}"


def _bar(query: QueryView) -> str:
    if query.share is None:
        return NONE
    full = round(query.share * _BAR)
    return f"{'━' * full}{'╌' * (_BAR - full)} {query.share:4.0%}"


def _rows_in(query: QueryView) -> str:
    return f"{query.rows_in + query.under_way:,}" if query.last or query.under_way else NONE


def _in_rate(query: QueryView) -> str:
    if query.state not in _READING:
        return NONE
    if query.under_way_per_second is not None:
        return f"{query.under_way_per_second:,.0f}"
    return f"{query.last.rows_processed_per_second:,.0f}" if query.last else NONE


def _out_rate(query: QueryView) -> str:
    last = query.last
    if query.state not in _READING or last is None or last.rows_out is None or not last.duration_ms:
        return NONE
    return f"{last.rows_out * 1_000 / last.duration_ms:,.0f}"


def _latency(query: QueryView) -> str:
    times = query.last.slowest if query.last else None
    return NONE if times is None else f"{to_words(times.p50_ms)} · {to_words(times.p99_ms)}"


def _late(query: QueryView) -> int:
    return query.late_rows + query.late_groups


def _dead_letters(query: QueryView) -> int:
    return sum(query.set_aside.values())


def _count(number: int) -> str:
    return f"{number:,}" if number else NONE
