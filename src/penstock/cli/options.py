"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Pipelines = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTOR]...",
        help="Pipelines by name or file, `pipeline.query`, `tag:…`; `+x` with all that feeds it, `x+` with all that it"
        " feeds. All of the project by default.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Env = Annotated[
    str | None, typer.Option("--env", metavar="NAME", help="An environment of penstock.yaml.", show_default=False)
]
Project = Annotated[
    Path,
    typer.Option("--project", "-p", metavar="DIR", help="The project's folder, or one inside it.", show_default="here"),
]
