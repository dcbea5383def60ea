"""`penstock init`: a project that runs as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import Json
from penstock.cli.screen import out, print_json


def init(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.", metavar="DIR")],
    as_json: Json = False,
) -> None:
    """Makes a project with a pipeline, sample input, and completion for editors."""
    from penstock.actions.init import init as init_action

    result = init_action(folder)
    if as_json:
        print_json(result.to_json())
        return
    out.print(f"[bold green]✓[/] {result.folder}")
    for file in result.files:
        if not file.startswith(("data/orders", ".penstock")):
            out.print(f"  {file}")
    out.print(f"\nNow: [bold]cd {result.folder} && penstock check && penstock run --once[/]")
