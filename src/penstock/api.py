"""The pipeline that Python code writes and starts: `from penstock import Pipeline`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipeline.from_python import Builder
from penstock.query.triggers import Trigger

if TYPE_CHECKING:
    from penstock.actions.start import Handle


class Pipeline(Builder):
    """Sources, steps and sinks, gathered by calls; `start()` runs them in this process."""

    def start(self, *, project: Path | str | None = None, environment: str | None = None, once: bool = False) -> Handle:
        """Checks and starts every query. Raises UserError with all that is wrong, before anything is written.

        `project` is the folder of `penstock.yaml`, by default the nearest above the current one. A Spark that runs in
        this process already is used as it is; otherwise one is started, and ends when the handle is closed.
        """
        from penstock.actions.start import start

        return start(
            self.build(), Path(project) if project else Path(), environment, Trigger("available_now") if once else None
        )
