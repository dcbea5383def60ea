"""`penstock doctor`: is this machine ready?"""

from __future__ import annotations

from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from penstock.cli.options import Json, Project
from penstock.cli.screen import PROBLEMS, out, print_json

_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "error": "[red]✗[/]"}


def doctor(project: Project = Path(), as_json: Json = False) -> None:
    """Looks at Python, Java, Spark, memory, disk and connectors, and says what to fix."""
    from penstock.actions.doctor import doctor as look

    result = look(project)
    if as_json:
        print_json(result.to_json())
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in result.findings:
            fix = f"\n[green]fix:[/] {escape(finding.fix)}" if finding.fix else ""
            table.add_row(_MARKS[finding.level], f"[bold]{finding.name}[/]", escape(finding.found) + fix)
        out.print(table)
    raise typer.Exit(0 if result.ok else PROBLEMS)
