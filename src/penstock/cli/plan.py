"""`penstock plan`: what a run would do to each checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli.options import Env, Json, Pipelines, Project
from penstock.cli.screen import PROBLEMS, out, print_json, show_problems

if TYPE_CHECKING:
    from penstock.actions.plan import PlanResult
    from penstock.plan.verdict import QueryPlan

_COLOURS = {"new": "cyan", "resume": "green", "warn": "yellow", "migrate": "red", "restart": "red", "refuse": "red"}
_MEANS = {
    "new": "starts for the first time",
    "resume": "resumes from its checkpoint",
    "warn": "resumes, with a change from here on",
    "migrate": "needs its checkpoint migrated first",
    "restart": "needs a new generation of its checkpoint",
    "refuse": "cannot start",
}


def plan(
    pipelines: Pipelines = None,
    fast: bool = typer.Option(False, "--fast", help="Without Spark: what the text and the checkpoints tell."),
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Shows what a run would do to each checkpoint: resume, start new, or refuse and why."""
    from penstock.actions import plan as action
    from penstock.pipeline.load import find_root

    start_engine = None
    if not fast:
        from penstock.cli.engine import starter

        start_engine = starter(quiet=as_json, brief=True)
    result = action.plan(project, tuple(pipelines or ()), env, start_engine)
    if as_json:
        print_json(result.to_json())
    else:
        root = find_root(project) or project
        show_plans(result, root)
        show_problems([one for one in result.problems if one not in _shown(result)], root)
    raise typer.Exit(0 if result.ok else PROBLEMS)


def _shown(result: PlanResult) -> set[object]:
    return {finding.problem for query in result.queries for finding in query.findings}


def show_plans(result: PlanResult, root: Path) -> None:
    """One row per query, and under it what was found."""
    width = max((len(f"{one.pipeline}.{one.query}") for one in result.queries), default=0)
    for query in result.queries:
        _show_query(query, width)
        for finding in query.findings:
            colour = _COLOURS[finding.verdict]
            out.print(f"  [{colour}]{finding.verdict}[/] [bold]{finding.code}[/] ", end="")
            out.print(f"{finding.node}: {finding.message}", markup=False, soft_wrap=True)
            if finding.where:
                out.print(f"    {finding.where}", style="dim", markup=False, soft_wrap=True)
            if finding.before or finding.now:
                out.print(f"    checkpoint: {finding.before or '-'}", markup=False, soft_wrap=True)
                out.print(f"    now:        {finding.now or '-'}", markup=False, soft_wrap=True)
            if finding.verdict != "resume":
                out.print(f"    fix: {finding.fix}", markup=False, soft_wrap=True)


def _show_query(query: QueryPlan, width: int) -> None:
    name = f"{query.pipeline}.{query.query}".ljust(width)
    place = f" · generation {query.generation}" if query.generation else ""
    batch = f" · batch {query.last_batch} committed" if query.last_batch is not None else ""
    colour, means = _COLOURS[query.verdict], _MEANS[query.verdict]
    out.print(f"[bold]{name}[/]  [{colour}]{query.verdict:<7}[/] [dim]{means}{place}{batch}[/]", soft_wrap=True)
