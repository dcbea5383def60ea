"""Which view of a run the terminal gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.screen import is_interactive, out
from penstock.screens.views import LiveView, PlainView, View

if TYPE_CHECKING:
    from penstock.supervise.events import Event


class EventLines(View):
    """Each event as a line of JSON, when it happens: for programs that follow a run."""

    def event(self, event: Event) -> None:
        from penstock.cli.screen import print_json_line

        print_json_line(event.to_json())


def view_for(once: bool, as_json: bool, events: bool = False) -> View:
    if events:
        return EventLines()
    if as_json:
        return View()
    return LiveView(out, once) if is_interactive() else PlainView(out)
