"""`penstock check`: every rule, and Spark's own verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Env, Json, Pipelines, Project
from penstock.cli.screen import PROBLEMS, out, print_json, show_problems
from penstock.notation.counts import counted

if TYPE_CHECKING:
    from penstock.actions.check import CheckResult


_SCREEN = Path("-")


def check(
    pipelines: Pipelines = None,
    fast: bool = typer.Option(
        False, "--fast", help="Without Spark: what the text and the disk tell, in under a second."
    ),
    offline: bool = typer.Option(
        False, "--offline", help="Ask no broker, database or other service whether it can be reached: for CI."
    ),
    show_plan: bool = typer.Option(
        False,
        "--show-plan",
        help="Spark's plan of each query too, what keeps state in it, and every setting with its reason.",
    ),
    sarif: Annotated[
        Path | None,
        typer.Option(
            "--sarif",
            metavar="FILE",
            help="Writes the problems to a file for editors and CI, as SARIF; `-` for the screen.",
        ),
    ] = None,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Finds what is wrong before anything runs."""
    if fast and show_plan:
        raise typer.BadParameter("a plan is Spark's: leave out --fast", param_hint="--show-plan")
    from penstock.actions import check as action
    from penstock.pipeline.load import find_root

    start_engine = None
    if not fast:
        from penstock.cli.engine import starter

        start_engine = starter(quiet=as_json or sarif == _SCREEN, brief=True)
    result = action.check(project, tuple(pipelines or ()), env, start_engine, show_plan, offline)
    if sarif is not None:
        from penstock.cli.sarif import write

        write(result.problems, sarif)
    if as_json:
        print_json(result.to_json())
    elif sarif != _SCREEN:
        _show_plans(result)
        show_problems(result.problems, find_root(project) or project, pipelines=result.files)
        if result.ok:
            _show_summary(result)
    raise typer.Exit(0 if result.ok else PROBLEMS)


def _show_plans(result: CheckResult) -> None:
    for plan in result.plans:
        out.print(f"[bold]{plan.pipeline}.{plan.query}[/]")
        out.print(plan.text, markup=False, soft_wrap=True)
        if plan.stateful:
            out.print(f"\n[bold]with state:[/] {', '.join(plan.stateful)}", soft_wrap=True)
        else:
            out.print("\n[dim]keeps no state[/]")
        for setting in plan.settings:
            costs = f"; {setting.costs}" if setting.costs else ""
            out.print(f"{setting.name} = [bold]{setting.value}[/] [dim]({setting.why}{costs})[/]", soft_wrap=True)
        out.print()


def _show_summary(result: CheckResult) -> None:
    for query in result.queries:
        out.print(
            f"[dim]{query.pipeline}.[/][bold]{query.query}[/] → {query.sink} · {query.mode} · "
            f"[bold]{query.promise}[/] [dim]({query.reason})[/]",
            soft_wrap=True,
        )
    typer.secho("✓ ", fg="green", bold=True, nl=False, color=False if os.environ.get("NO_COLOR") else None)
    typer.echo(f"{counted(len(result.pipelines), 'pipeline')} checked")
