"""`penstock bench`: latency and throughput, side by side with others, in one run."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.bench.report import HEADINGS, UNITS, cells, comparison_texts, further_texts, notes, three_digits
from penstock.bench.results import Run, Summary
from penstock.bench.turn import Options, Turn, Watching
from penstock.bench.workloads.every_workload import USUAL, WORKLOADS
from penstock.bench.workloads.workload import Workload
from penstock.cli.dev import signals_raise
from penstock.cli.options import Json
from penstock.cli.screen import FAILED, err, out, print_json
from penstock.notation.counts import counted

if TYPE_CHECKING:
    from penstock.actions.bench import BenchResult
    from penstock.bench.contenders.contender import Contender

_USUAL = Options()


def _names(workloads: Sequence[Workload]) -> str:
    return ", ".join(workload.name for workload in workloads)


def bench(
    workloads: Annotated[
        list[str] | None, typer.Argument(help=f"Workloads by name; {_names(USUAL)} by default.", show_default=False)
    ] = None,
    contenders: Annotated[
        str, typer.Option(help="Contenders, joined with commas; all by default.", metavar="A,B", show_default=False)
    ] = "",
    rounds: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often each contender is measured.")
    ] = _USUAL.rounds,
    seconds: Annotated[
        float, typer.Option(metavar="N", min=1, help="How long it is measured each time.")
    ] = _USUAL.seconds,
    warm: Annotated[
        float, typer.Option(metavar="N", min=0, help="Seconds before the first, not measured.")
    ] = _USUAL.warm_seconds,
    starts: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="How often each contender is started; the rounds are spread over these."),
    ] = _USUAL.starts,
    rate: Annotated[float, typer.Option(metavar="N", min=1, help="Records a second.")] = _USUAL.rate,
    records: Annotated[
        int, typer.Option(metavar="N", min=1_000, help="Records that wait, where the rate is sought.")
    ] = (_USUAL.records),
    out_folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Where results.json and a plot of each workload go.", metavar="DIR", show_default=False
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All workloads. Takes hours.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List workloads and contenders, and end.")] = False,
    as_json: Json = False,
) -> None:
    """Measures workloads with several contenders on this machine: latency, rate, CPU, memory. Takes minutes."""
    if list_:
        _show_list(as_json)
        return
    from penstock.actions.bench import bench as bench_action

    gc.enable()  # a benchmark of many rounds makes rubbish enough
    options = Options(rounds, seconds, warm, starts, rate, records)
    names = tuple(name.strip() for name in contenders.split(",") if name.strip())
    chosen = tuple(one.name for one in WORKLOADS) if all_ else tuple(workloads or ())
    with signals_raise(), _watching(as_json) as watching:
        result = bench_action(chosen, names, options, out_folder, watching)
    if as_json:
        print_json(result.to_json())
    else:
        _show_end(result)
    raise typer.Exit(0 if result.ok else FAILED)


def _show_list(as_json: bool) -> None:
    from penstock.bench.contenders.every_contender import CONTENDERS

    parts: dict[str, Sequence[Workload | Contender]] = {"workloads": WORKLOADS, "contenders": CONTENDERS}
    if as_json:
        print_json({kind: [{"name": one.name, "title": one.title} for one in known] for kind, known in parts.items()})
        return
    for kind, known in parts.items():
        out.print(f"[dim]{kind}[/]")
        for one in known:
            out.print(f"  [bold]{one.name:<13}[/]{escape(one.title)}", soft_wrap=True)


@contextmanager
def _watching(as_json: bool) -> Iterator[Watching]:
    """Progress on a terminal, and a table as soon as a workload is done."""
    if as_json:
        yield Watching()
        return
    columns = (TextColumn("[dim]{task.description}[/]"), BarColumn(bar_width=30), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal, refresh_per_second=2
    ) as progress:
        task = progress.add_task("Getting ready", total=None)

        def turn(one: Turn) -> None:
            progress.update(task, description=f"{one.workload.name}, round {one.round}: {one.contender.name}")

        def run(one: Run) -> None:
            progress.advance(task)
            err.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {_run_text(one)}")

        def plan(runs: int, seconds: float) -> None:
            progress.update(task, total=runs)
            err.print(f"[dim]{counted(runs, 'run')}, about {counted(math.ceil(seconds / 60), 'minute')}[/]")

        yield Watching(plan, turn, run, _show_summary)


def _run_text(run: Run) -> str:
    head = f"{run.workload}, round {run.round}: [bold]{run.contender}[/]"
    if run.problem:
        return f"{head} [red]does not count[/]: {escape(run.problem)}"
    if run.latency:
        return f"{head} p50 {three_digits(run.latency.p50)} ms, p99 {three_digits(run.latency.p99)} ms"
    return f"{head} {run.rows_per_second:,.0f} rows/s"


def _show_summary(summary: Summary) -> None:
    out.print(f"\n[bold]{summary.workload}[/]  {escape(summary.title)}")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for line in summary.lines:
        table.add_row(*cells(line))
    out.print(table)
    for text in (*further_texts(summary), *comparison_texts(summary)):
        out.print(f"  {text}", soft_wrap=True)
    for note in notes(summary):
        out.print(f"  [yellow]{escape(note)}[/]", soft_wrap=True)


def _show_end(result: BenchResult) -> None:
    out.print(f"\n[dim]{UNITS}[/]", soft_wrap=True)
    machine = result.machine
    out.print(f"[dim]Spark {machine['spark']} · Python {machine['python']} · {machine['cores']} cores[/]")
    for file in result.files:
        out.print(f"Written: [bold]{escape(file)}[/]", soft_wrap=True)
