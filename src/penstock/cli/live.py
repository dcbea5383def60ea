"""What a run looks like: a live table, a progress bar for `--once`, plain lines where there is no terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.cli.screen import counted, is_interactive, out
from penstock.notation.durations import to_words

if TYPE_CHECKING:
    from penstock.actions.run import RunResult
    from penstock.supervise.loop import QueryView, Snapshot

_STATE_STYLE = {
    "running": "bold green",
    "waiting": "green",
    "stopping": "yellow",
    "done": "bold green",
    "stopped": "yellow",
    "failed": "bold red",
}
_STATE_MARK = {"running": "●", "waiting": "○", "stopping": "◌", "done": "✓", "stopped": "■", "failed": "✗"}


class View:
    """Shows nothing; the base of all views."""

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def preparing(self) -> None:
        """Spark has started; its queries have not."""

    def snapshot(self, snapshot: Snapshot) -> None:
        return None

    def console_line(self, line: str) -> None:
        return None

    def ended(self, result: RunResult) -> None:
        return None


class PlainView(View):
    """A line for each batch: for logs and pipes."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], int] = {}

    def snapshot(self, snapshot: Snapshot) -> None:
        for query in snapshot.queries:
            key = (query.pipeline, query.name)
            if query.last and self._shown.get(key) != query.last.batch:
                self._shown[key] = query.last.batch
                out.print(
                    f"{time.strftime('%H:%M:%S')} {query.pipeline}.{query.name} {_batch_words(query)}", soft_wrap=True
                )

    def console_line(self, line: str) -> None:
        out.print(line, markup=False, soft_wrap=True)

    def ended(self, result: RunResult) -> None:
        show_end(result)


class LiveView(View):
    """A table that changes in place, with a bar per query when the run has an end."""

    def __init__(self, once: bool) -> None:
        self._once = once
        self._live = Live(console=out, refresh_per_second=8, transient=True)

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def preparing(self) -> None:
        self._live.start()
        self._live.update(Spinner("dots", Text(" Preparing queries", style="dim")))

    def snapshot(self, snapshot: Snapshot) -> None:
        self._live.update(live_table(snapshot, self._once))

    def console_line(self, line: str) -> None:
        out.print(line, markup=False)

    def ended(self, result: RunResult) -> None:
        show_end(result)


def view_for(once: bool, as_json: bool) -> View:
    if as_json:
        return View()
    return LiveView(once) if is_interactive() else PlainView()


def live_table(snapshot: Snapshot, once: bool) -> Group:
    """Per query: state, batch, rows in and out a second, bad rows, lag, watermark, the last batch's time.

    Where records are timed, also how late they came, and how long the pause between two batches was.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("query", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for header in ("batch", "rows in", "in/s", "out/s", "bad", "behind"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("watermark (UTC)", no_wrap=True)
    table.add_column("last batch", justify="right", no_wrap=True)
    timed = any(query.last and query.last.times for query in snapshot.queries)
    for header in ("p50 · p99", "pause") if timed else ():
        table.add_column(header, justify="right", no_wrap=True)
    if once:
        table.add_column("taken", width=22)
    for query in snapshot.queries:
        cells = [*_cells(query), *(_time_cells(query) if timed else [])]
        table.add_row(*cells, *([_bar(query)] if once else []))
    note = (
        "stopping: batches under way commit first; Ctrl-C again ends at once" if snapshot.stopping else "Ctrl-C stops"
    )
    footer = Spinner("dots", Text(f" {to_words(snapshot.elapsed_seconds * 1_000)}  ·  {note}", style="dim"))
    return Group(table, footer)


def _cells(query: QueryView) -> list[str | Text]:
    last = query.last
    state = Text(f"{_STATE_MARK[query.state]} {query.state}", style=_STATE_STYLE[query.state])
    name = Text.assemble((f"{query.pipeline}.", "dim"), (query.name, "bold"))
    rows_in = f"{query.rows_in + query.under_way:,}"
    rate = query.under_way_per_second
    if last is None:
        under_way = [rows_in, "–" if rate is None else f"{rate:,.0f}"] if query.under_way else ["–", "–"]
        return [name, state, "–", *under_way, *["–"] * 5]
    out_rate = (
        (last.rows_out or 0) * 1_000 / last.duration_ms if last.duration_ms and last.rows_out is not None else None
    )
    return [
        name,
        state,
        f"{last.batch:,}",
        rows_in,
        f"{last.rows_processed_per_second if rate is None else rate:,.0f}",
        "–" if out_rate is None else f"{out_rate:,.0f}",
        Text(f"{query.bad_rows:,}", style="yellow") if query.bad_rows else "–",
        "–" if last.behind is None else f"{last.behind:,.0f}",
        _time_of(last.watermark),
        to_words(last.duration_ms),
    ]


def _time_cells(query: QueryView) -> list[str]:
    times = query.last.slowest if query.last else None
    late = "–" if times is None else f"{to_words(times.p50_ms)} · {to_words(times.p99_ms)}"
    return [late, "–" if query.pause_ms is None else to_words(query.pause_ms)]


def _time_words(query: QueryView) -> list[str]:
    """How late the records of the last batch came, and the pause before it."""
    times = query.last.slowest if query.last else None
    if times is None:
        return []
    told = {"p50": times.p50_ms, "p95": times.p95_ms, "p99": times.p99_ms, "max": times.max_ms}
    words = [f"latency {', '.join(f'{name} {to_words(value)}' for name, value in told.items())}"]
    return words if query.pause_ms is None else [*words, f"pause {to_words(query.pause_ms)}"]


def _bar(query: QueryView) -> ProgressBar:
    if query.share is None:
        return ProgressBar(total=None, width=20, pulse=True)
    return ProgressBar(total=1.0, completed=query.share, width=20)


def _batch_words(query: QueryView) -> str:
    last = query.last
    if last is None:
        return ""
    words = [f"batch {last.batch}", f"{counted(last.rows_in, 'row')} in"]
    if last.rows_out is not None:
        words.append(f"{last.rows_out:,} out")
    words.append(to_words(last.duration_ms))
    words += _time_words(query)
    if last.watermark:
        words.append(f"watermark {_time_of(last.watermark)}")
    words += _late_words(last.late_rows, last.late_groups)
    if last.refused:
        words.append(f"{last.refused:,} bad")
    return " · ".join(words)


def _late_words(rows: int, groups: int) -> list[str]:
    """What came behind the watermark: aggregations count groups of rows, all else rows."""
    return [f"{counted(number, noun)} late" for number, noun in ((rows, "row"), (groups, "group")) if number]


def _time_of(watermark: str | None) -> str:
    return watermark.replace("T", " ").partition(".")[0].removesuffix("Z") if watermark else "–"


def show_end(result: RunResult) -> None:
    """One line per query: how it ended and what it did."""
    for query in result.queries:
        mark = Text(_STATE_MARK[query.state], style=_STATE_STYLE[query.state])
        late = "".join(f" · {words}" for words in _late_words(query.late_rows, query.late_groups))
        late += f" · {query.bad_rows:,} bad" if query.bad_rows else ""
        late += f" · {counted(query.restarts, 'restart')}" if query.restarts else ""
        late += "".join(f" · {words}" for words in _time_words(query))
        late += f" · {counted(query.under_way, 'row')} in a batch that did not end" if query.under_way else ""
        did = f"{counted(query.batches, 'batch')} · {counted(query.rows_in, 'row')} in · {query.rows_out:,} out{late}"
        said = f" {query.pipeline}.{query.name} {query.state}: {did}"
        out.print(Text.assemble(mark, said, (f" · {query.promise}", "dim")))
