"""`penstock check`: every rule, and Spark's own verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli.options import Env, Json, Pipelines, Project
from penstock.cli.screen import PROBLEMS, counted, out, print_json, show_problems

if TYPE_CHECKING:
    from penstock.actions.check import CheckResult


def check(
    pipelines: Pipelines = None,
    fast: bool = typer.Option(
        False, "--fast", help="Without Spark: what the text and the disk tell, in under a second."
    ),
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Finds what is wrong before anything runs."""
    from penstock.actions import check as action
    from penstock.pipeline.load import find_root

    start_engine = None
    if not fast:
        from penstock.cli.engine import starter

        start_engine = starter(quiet=as_json)
    result = action.check(project, tuple(pipelines or ()), env, start_engine)
    if as_json:
        print_json(result.to_json())
    else:
        show_problems(result.problems, find_root(project) or project)
        if result.ok:
            _show_summary(result)
    raise typer.Exit(0 if result.ok else PROBLEMS)


def _show_summary(result: CheckResult) -> None:
    for query in result.queries:
        out.print(
            f"[dim]{query.pipeline}.[/][bold]{query.query}[/] → {query.sink} · {query.mode} · "
            f"[bold]{query.promise}[/] [dim]({query.reason})[/]",
            soft_wrap=True,
        )
    typer.secho("✓ ", fg="green", bold=True, nl=False, color=False if os.environ.get("NO_COLOR") else None)
    typer.echo(f"{counted(len(result.pipelines), 'pipeline')} checked")
