"""`penstock show`: a look at a step's rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.engine import starter
from penstock.cli.options import Env, Json, Project
from penstock.cli.screen import out, print_json

if TYPE_CHECKING:
    from penstock.actions.show import ShowResult


def show(
    steps: Annotated[
        list[str],
        typer.Argument(
            metavar="STEP...",
            help="A source or step, also as `pipeline.step`; `+x` with all that it is made from, `x+` with all that is"
            " made from it.",
        ),
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="Rows to show.")] = 20,
    pipeline: Annotated[
        str | None,
        typer.Option("--pipeline", metavar="NAME", help="Its pipeline, by name or file.", show_default=False),
    ] = None,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Shows rows and schema of a step, made from a sample of its input. Nothing is written."""
    from penstock.actions.show import show_all

    results = show_all(project, tuple(steps), pipeline, limit, env, starter(quiet=as_json, brief=True))
    if as_json:
        shown = [result.to_json() for result in results]
        print_json(shown[0] if len(steps) == len(shown) == 1 else shown)
        return
    for result in results:
        _show_rows(result)


def _show_rows(result: ShowResult) -> None:
    from penstock.actions.show import SAMPLE_ROWS

    table = Table(header_style="bold", title=result.step, title_justify="left")
    for name, kind in result.columns:
        table.add_column(Text.assemble(name, "\n", (kind, "dim")), overflow="fold")
    for row in result.rows:
        # As Text: what looks like markup in the data is data.
        table.add_row(*(Text("NULL", "dim") if value is None else Text(str(value)) for value in row))
    out.print(table)
    note = f", made from up to {SAMPLE_ROWS:,} rows of each stream" if result.sampled else ""
    out.print(f"[dim]{len(result.rows)} rows{note}[/]")
