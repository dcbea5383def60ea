"""The pipeline that Python code writes, checks and starts: `from penstock import Pipeline`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipeline.from_python import Builder
from penstock.problems import UserError
from penstock.query.triggers import Trigger

if TYPE_CHECKING:
    import pandas as pd

    from penstock.actions.check import CheckResult
    from penstock.actions.start import Handle
    from penstock.pipeline.load import Loaded
    from penstock.screens.views import View


class Pipeline(Builder):
    """Sources, steps and sinks, gathered by calls; `start()` runs them in this process.

    `project` is the folder of `penstock.yaml`, by default the nearest above the current one. A Spark that runs in this
    process already is used as it is. Otherwise one is started. `check` and `show` keep it for the next call; it ends
    when the last handle is closed, or with the process.
    """

    def check(
        self,
        *,
        project: Path | str | None = None,
        environment: str | None = None,
        fast: bool = False,
        offline: bool = False,
    ) -> CheckResult:
        """Finds what is wrong, as `penstock check` does. A mistake is in `problems` of the result, and never raised.

        `fast` starts no Spark. `offline` asks no service whether it can be reached.
        """
        from penstock.actions.check import CheckResult, check_loaded
        from penstock.actions.start import looking

        try:
            loaded = self._loaded(project, environment)
            if fast:
                return check_loaded(loaded, None)
            with looking() as start_engine:
                return check_loaded(loaded, start_engine, offline=offline)
        except UserError as error:
            return CheckResult((self.name,), (), error.problems, fast)

    def show(
        self, step: str, *, limit: int = 20, project: Path | str | None = None, environment: str | None = None
    ) -> pd.DataFrame:
        """The first rows of a source or step, made from a sample of its input: a DataFrame of pandas.

        Nothing is written. Times are UTC. Raises UserError.
        """
        from penstock.actions.show import show_loaded
        from penstock.actions.start import looking

        with looking() as start_engine:
            return show_loaded(self._loaded(project, environment), step, limit, start_engine).to_pandas()

    def start(
        self,
        *,
        project: Path | str | None = None,
        environment: str | None = None,
        once: bool = False,
        progress: bool = False,
    ) -> Handle:
        """Checks and starts every query. Raises UserError with all that is wrong, before anything is written.

        `once` takes all that is there now, then ends. `progress` shows the run while it lasts: as a table in a terminal
        or in the cell of a notebook, elsewhere as lines on stderr.
        """
        from penstock.actions.start import start
        from penstock.screens.views import View

        trigger = Trigger("available_now") if once else None
        view = _progress(once) if progress else View()
        return start(self._loaded(project, environment), trigger, view=view)

    def __repr__(self) -> str:
        from penstock.actions.check import summaries_of
        from penstock.screens.reprs import pipeline_text, problem_words

        try:
            built = self.build()
            return pipeline_text(built, summaries_of((built,)))
        except UserError as error:
            return "\n".join((f"Pipeline {self.name}", *problem_words(error.problems)))

    def _repr_html_(self) -> str:
        from penstock.actions.check import CheckResult, summaries_of
        from penstock.screens.html import check_html, pipeline_html

        try:
            built = self.build()
            return pipeline_html(built, summaries_of((built,)))
        except UserError as error:
            return check_html(CheckResult((self.name,), (), error.problems, fast=True))

    def _loaded(self, project: Path | str | None, environment: str | None) -> Loaded:
        from penstock.actions.start import loaded_in

        return loaded_in(self.build(), Path(project) if project else Path(), environment)


_HOW_TO_STOP = "stop() of the handle ends it"


def _progress(once: bool) -> View:
    import sys

    from rich.console import Console

    from penstock.screens.notebook import NotebookView
    from penstock.screens.views import LiveView, PlainView

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and hasattr(shell, "kernel"):
        return NotebookView()
    console = Console(stderr=True, highlight=False, emoji=False)
    return LiveView(console, once, _HOW_TO_STOP) if console.is_terminal else PlainView(console)
