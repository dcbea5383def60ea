"""A run on a console: a table that changes in place, or plain lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import ConsoleRenderable, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from penstock.screens.event_lines import in_one_line, started_line
from penstock.screens.live_table import HOW_TO_STOP, STATE_STYLE, LiveTable
from penstock.screens.query_words import STATE_MARK, batch_words, heartbeat_words, sum_words, times_words

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.supervise.events import Event
    from penstock.supervise.query_view import QueryView, Snapshot

HEARTBEAT_SECONDS = 30.0
_KEPT_LINES = 200


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

    def event(self, event: Event) -> None:
        return None

    def console_line(self, line: str) -> None:
        return None

    def ended(self, queries: tuple[QueryView, ...]) -> None:
        return None


class PlainView(View):
    """A line for each start, batch and mishap, and each 30 seconds how every query is: for logs and pipes."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.time) -> None:
        self._console, self._clock = console, clock
        self._shown: dict[tuple[str, str], int] = {}
        self._beat_at: float | None = None

    def snapshot(self, snapshot: Snapshot) -> None:
        for query in snapshot.queries:
            key = (query.pipeline, query.name)
            if query.last and self._shown.get(key) != query.last.batch:
                self._shown[key] = query.last.batch
                self._line(f"{query.pipeline}.{query.name} {batch_words(query)}")
        now = self._clock()
        self._beat_at = now if self._beat_at is None else self._beat_at
        if now - self._beat_at >= HEARTBEAT_SECONDS:
            self._beat_at = now
            for query in snapshot.queries:
                if not query.has_ended:
                    self._line(f"{query.pipeline}.{query.name} {heartbeat_words(query, now)}")

    def event(self, event: Event) -> None:
        if line := in_one_line(event) or started_line(event):
            self._line(line)

    def console_line(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    def ended(self, queries: tuple[QueryView, ...]) -> None:
        show_end(queries, self._console)

    def _line(self, text: str) -> None:
        self._console.print(f"{_clock_time(self._clock())} {text}", markup=False, soft_wrap=True)


class LiveView(View):
    """A table that changes in place, with a bar per query when the run has an end."""

    def __init__(self, console: Console, once: bool, how_to_stop: str = HOW_TO_STOP) -> None:
        self._console, self._once, self._how_to_stop = console, once, how_to_stop
        self._live = _ResizedLive(console)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def preparing(self) -> None:
        self._live.start()
        self._live.update(Spinner("dots", Text(" Preparing queries", style="dim")))

    def snapshot(self, snapshot: Snapshot) -> None:
        self._live.update(LiveTable(snapshot, self._once, time.time(), self._how_to_stop))

    def event(self, event: Event) -> None:
        if line := in_one_line(event):
            self._live.line(Text(f"{_clock_time(event.at)} {line}", style="yellow"))

    def console_line(self, line: str) -> None:
        self._live.line(Text(line))

    def ended(self, queries: tuple[QueryView, ...]) -> None:
        show_end(queries, self._console)


class _ResizedLive(Live):
    """What is drawn in place, with lines above it, drawn again from the top when the terminal has another width.

    Terminals wrap or cut what is on the screen as they like when they become narrower, so nobody knows how many lines
    up the old table begins.
    """

    def __init__(self, console: Console) -> None:
        # What a script prints goes above the table, unless it is written to a file.
        super().__init__(
            console=console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )
        self._lines: deque[ConsoleRenderable] = deque(maxlen=_KEPT_LINES)
        self._drawn_at: int | None = None
        self._is_drawing_again = self._has_kept_what_was_before = False

    def line(self, line: Text) -> None:
        """Prints it above what changes."""
        with self._lock:
            if self._is_resized():
                self._draw_again()
            self.console.print(line)

    def refresh(self) -> None:
        with self._lock:
            if self._is_resized():
                self._draw_again()
            super().refresh()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Called by Rich with all that is printed, by a script too."""
        if not self._is_drawing_again:
            self._lines.extend(one for one in renderables if not isinstance(one, Control))
        return super().process_renderables(renderables)

    def _draw_again(self) -> None:
        height = self.console.height
        if not self._has_kept_what_was_before:  # what is not ours scrolls up, where it can still be read
            self.console.file.write(f"\x1b[{height};1H" + "\n" * height)
            self._has_kept_what_was_before = True
        self.console.control(Control.clear(), Control.home())
        room = height - 1 - self._height(self.get_renderable())
        kept: list[ConsoleRenderable] = []
        for line in reversed(self._lines):
            room -= self._height(line)
            if room < 0:
                break
            kept.insert(0, line)
        if kept:
            self._is_drawing_again = True
            try:
                self.console.print(Group(*kept))
            finally:
                self._is_drawing_again = False

    def _is_resized(self) -> bool:
        width = self.console.width
        before, self._drawn_at = self._drawn_at, width
        return before is not None and before != width and self.is_started and self.console.is_terminal

    def _height(self, drawn: RenderableType) -> int:
        return len(self.console.render_lines(drawn, pad=False))


def show_end(queries: tuple[QueryView, ...], console: Console) -> None:
    """One line per query: how it ended and what it did."""
    for query in queries:
        words = [*sum_words(query), *times_words(query)]
        if query.under_way:
            words.append(f"{query.under_way:,} {'row' if query.under_way == 1 else 'rows'} in a batch that did not end")
        mark = Text(STATE_MARK[query.state], style=STATE_STYLE[query.state])
        said = f" {query.pipeline}.{query.name} {query.state}: {' · '.join(words)}"
        line = Text.assemble(mark, said, (f" · {query.promise}", "dim"))
        console.print(line, soft_wrap=not console.is_terminal)  # a log has one line for one query


def _clock_time(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
