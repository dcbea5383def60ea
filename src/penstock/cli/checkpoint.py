"""`penstock checkpoint`: where queries resume, whether that is whole, and a new beginning."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.engine import starter
from penstock.cli.options import Env, Json, Pipelines, Project
from penstock.cli.screen import PROBLEMS, out, print_json, show_problems
from penstock.notation.counts import counted

if TYPE_CHECKING:
    from penstock.actions.checkpoint import ShownCheckpoint
    from penstock.actions.checkpoint_reset import ResetPlace, ResetPlan

checkpoint = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
)
_WORDS = ("earliest", "latest", "offsets")
_KB = 1024
Query = Annotated[str, typer.Argument(metavar="QUERY", help="`pipeline.query`; the query alone where that is clear.")]


@checkpoint.callback()
def group() -> None:
    """Where queries resume: list, show, verify, and begin again. Each command takes `--json`."""


@checkpoint.command("list")
def list_(pipelines: Pipelines = None, env: Env = None, project: Project = Path(), as_json: Json = False) -> None:
    """Lists the checkpoint of each query: its generation, batches, last commit and size."""
    from penstock.actions.checkpoint import list_checkpoints

    result = list_checkpoints(project, tuple(pipelines or ()), env, starter(quiet=as_json, brief=True))
    if as_json:
        print_json(result.to_json())
        return
    if not result.checkpoints:
        out.print("no checkpoints: no query was started yet")
        return
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("query", "generation", "batches", "last commit", "size", "id"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("generation", "batches", "size") else "left")
    for one in result.checkpoints:
        table.add_row(
            Text(f"{one.pipeline}.{one.query}", "bold"),
            str(one.number),
            f"{one.batches:,}",
            _moment(one.last_commit) if one.is_started else "not started",
            _size(one.bytes),
            Text(one.id[:8], "dim"),
        )
    out.print(table)


@checkpoint.command()
def show(query: Query, env: Env = None, project: Project = Path(), as_json: Json = False) -> None:
    """Shows where a query resumes: sources, watermark, settings, state and generations."""
    from penstock.actions.checkpoint import show_checkpoint

    result = show_checkpoint(project, query, env, starter(quiet=as_json, brief=True))
    if as_json:
        print_json(result.to_json())
    else:
        _show(result)


@checkpoint.command()
def verify(
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="One query; all of the project by default.")
    ] = None,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Reads every file that the next start needs, and compares checkpoints with their sinks."""
    from penstock.actions.checkpoint import verify_checkpoints
    from penstock.pipeline.load import find_root

    result = verify_checkpoints(project, query, env, starter(quiet=as_json, brief=True))
    if as_json:
        print_json(result.to_json())
    else:
        for one in result.checkpoints:
            mark = "[bold red]✗[/]" if one.problems else "[bold green]✓[/]"
            out.print(f"{mark} {one.pipeline}.{one.query}  [dim]{one.path}[/]", soft_wrap=True)
        show_problems(result.problems, find_root(project) or project)
        if not result.checkpoints:
            out.print("no checkpoints: no query was started yet")
    raise typer.Exit(0 if result.ok else PROBLEMS)


@checkpoint.command()
def reset(
    query: Query,
    from_: Annotated[
        str,
        typer.Option("--from", metavar="PLACE", help="`earliest`, `latest`, `offsets` (the old ones) or a timestamp."),
    ],
    keep_output: Annotated[bool, typer.Option("--keep-output", help="Leave the sinks as they are.")] = False,
    empty_output: Annotated[bool, typer.Option("--empty-output", help="Remove all rows from the sinks.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Gives a query a new checkpoint with a new identity. The old one is kept."""
    from penstock.actions.checkpoint_reset import reset_checkpoint

    if keep_output and empty_output:
        raise typer.BadParameter("give one of --keep-output and --empty-output")
    place = _place(from_)
    output = "keep" if keep_output else "empty" if empty_output else None
    result = reset_checkpoint(
        project,
        query,
        env,
        place,
        output,  # type: ignore[arg-type] # mypy takes the words for any text
        lambda plan: _confirmed(plan, yes=yes, quiet=as_json),
        starter(quiet=as_json, brief=True),
    )
    if as_json:
        print_json(result.to_json())
        return
    plan = result.plan
    emptied = f", emptied {', '.join(result.emptied)}" if result.emptied else ""
    out.print(f"[bold green]✓[/] {plan.name} begins with generation {plan.generation}{emptied}", soft_wrap=True)
    out.print(f"[dim]  the old one is kept: {plan.old}[/]", soft_wrap=True)


def _place(text: str) -> ResetPlace:
    from penstock.actions.checkpoint_reset import ResetPlace
    from penstock.sources.kafka_positions import to_moment

    if text in _WORDS:
        return ResetPlace(text)
    try:
        return ResetPlace(text, to_moment(text))
    except ValueError:
        raise typer.BadParameter(
            "give `earliest`, `latest`, `offsets` or a timestamp such as `2026-01-31T12:00:00Z`", param_hint="--from"
        ) from None


def _confirmed(plan: ResetPlan, *, yes: bool, quiet: bool) -> bool:
    from penstock.actions.checkpoint_reset import is_interactive

    if not quiet:
        _show_plan(plan)
    if yes:
        return True
    if quiet or not is_interactive():
        return False
    return bool(typer.prompt(f"Type {plan.name} to go on", default="", show_default=False) == plan.name)


def _show_plan(plan: ResetPlan) -> None:
    out.print(f"[bold]{plan.name}[/] gets a new checkpoint, generation {plan.generation}, from {plan.place.text}")
    for one in plan.sinks:
        shared = f" [yellow](also written by {', '.join(one.shared_with)})[/]" if one.shared_with else ""
        out.print(f"  sink [bold]{one.sink}[/] ({one.type}, {one.place}) {one.effect}{shared}", soft_wrap=True)
    for note in plan.notes:
        out.print(f"  [yellow]{note}[/]", soft_wrap=True)


def _show(result: ShownCheckpoint) -> None:
    newest = result.generation
    out.print(f"[bold]{newest.pipeline}.{newest.query}[/]  [dim]{newest.path}[/]", soft_wrap=True)
    rows: list[tuple[str, str]] = [("identity", newest.id), ("batches", f"{newest.batches:,}")]
    rows.append(("last commit", _moment(newest.last_commit)))
    if result.under_way is not None:
        rows.append(("under way", f"batch {result.under_way}: planned, not committed"))
    rows += [(f"source {name}", place) for name, place in result.sources.items()]
    if result.watermark is not None:
        rows.append(("watermark", _moment(result.watermark)))
    rows += [
        (f"state {one.number}", f"{one.name}, {counted(one.partitions, 'partition')}, {_size(one.bytes)}")
        for one in result.operators
    ]
    rows += [("setting", f"{key} = {value}") for key, value in sorted(result.settings.items())]
    rows += [
        (f"generation {one.number}", f"{counted(one.batches, 'batch')}, {_moment(one.last_commit)}, {one.id}")
        for one in result.generations
    ]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(f"  {name}", Text(value))
    out.print(grid)


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "–"


def _size(size: int | None) -> str:
    if size is None:
        return "–"
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < _KB:
            break
        value, unit = value / _KB, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
