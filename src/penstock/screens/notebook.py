"""A run in a notebook: one display of the cell that started it, changed as the run goes on."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.screens.html import run_html
from penstock.screens.reprs import run_text
from penstock.screens.views import View

if TYPE_CHECKING:
    from penstock.supervise.query_view import Snapshot

_SECONDS = 0.5


class NotebookView(View):
    """Changes at most twice a second, and once more at the end."""

    def __init__(self) -> None:
        self._display: Any = None
        self._last: Snapshot | None = None
        self._shown_at = 0.0

    def preparing(self) -> None:
        from IPython import display as ipython

        show: Any = ipython.display
        self._display = show({"text/html": "<i>Preparing queries</i>", "text/plain": "Preparing queries"},
                             raw=True, display_id=True)  # fmt: skip

    def snapshot(self, snapshot: Snapshot) -> None:
        self._last = snapshot
        if time.monotonic() - self._shown_at >= _SECONDS:
            self._show(snapshot)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._last is not None:
            self._show(self._last)
        elif self._display is not None:  # refused: what is raised says why
            self._display.update({"text/plain": ""}, raw=True)

    def _show(self, snapshot: Snapshot) -> None:
        if self._display is not None:
            now, self._shown_at = time.time(), time.monotonic()
            shown = {"text/html": run_html(snapshot, now), "text/plain": run_text(snapshot, now)}
            self._display.update(shown, raw=True)
