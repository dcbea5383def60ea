"""`penstock demo`: the main job, live, with a picture of its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from penstock.cli.engine import starter
from penstock.cli.live import view_for
from penstock.cli.options import Json
from penstock.cli.run import exit_code, stopped_by_signals
from penstock.cli.screen import FAILED, out, print_json, show_problems

if TYPE_CHECKING:
    from penstock.actions.demo import DemoResult

_BARS = "▁▂▃▄▅▆▇█"


def demo(
    folder: Annotated[Path, typer.Argument(help="Where the demo's project is made.", metavar="DIR")] = Path(
        "penstock-demo"
    ),
    as_json: Json = False,
) -> None:
    """Runs a whole pipeline on this machine alone: no broker, no server."""
    from penstock.actions.demo import FILES
    from penstock.actions.demo import demo as demo_action
    from penstock.supervise.stopping import Stop

    stop = Stop()
    view = view_for(once=False, as_json=as_json)
    if not as_json:
        out.print(
            f"Orders arrive as {FILES} files in [bold]{folder}/data/orders[/]: some late, some twice, some broken."
        )
        out.print("The pipeline sums revenue per minute and region, and writes Parquet.\n")
    with stopped_by_signals(stop), view:
        result = demo_action(folder, starter(quiet=as_json, then=view.preparing), stop, view.snapshot, (view.event,))
    if as_json:
        print_json(result.to_json())
    else:
        show_problems(result.run.problems, folder)
        view.ended(result.run.queries)
        if result.revenue:
            _show_picture(result)
    raise typer.Exit(0 if result.ok else exit_code(result.run) or FAILED)


def _show_picture(result: DemoResult) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("region")
    table.add_column("revenue per minute")
    table.add_column("sum", justify="right")
    for region, minutes in result.revenue.items():
        values = [value for _, value in minutes]
        table.add_row(f"[bold]{region}[/]", f"[cyan]{sparkline(values)}[/]", f"{sum(values):,.2f}")
    out.print()
    out.print(table)
    fed = result.fed
    left = fed.orders + fed.very_late - result.orders - result.late
    out.print(
        f"\n{fed.rows:,} rows came in: [bold]{result.orders:,}[/] orders counted,"
        f" {fed.duplicates:,} sent twice and counted once,"
        f" {result.malformed:,} broken and put aside,"
        f" {result.late:,} too late; {max(left, 0):,} wait in minutes that are still open.",
        soft_wrap=True,
    )
    out.print(f"\nResult:   [bold]{result.output}[/]  (Parquet)", soft_wrap=True)
    out.print(f"Pipeline: [bold]{result.folder}/pipelines/orders.yaml[/]", soft_wrap=True)


def sparkline(values: list[float]) -> str:
    """A row of bars, the highest value the tallest."""
    top = max(values, default=0.0)
    return "".join(
        _BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))] if top > 0 else _BARS[0] for value in values
    )
