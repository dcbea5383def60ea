"""`penstock graph`: what feeds what."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Env, Json, Pipelines, Project
from penstock.cli.screen import PROBLEMS, err, print_json, show_problems

if TYPE_CHECKING:
    from penstock.actions.graph import End, GraphResult

WIDTH = 80


def graph(
    pipelines: Pipelines = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a flowchart in Mermaid's words.")] = False,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Shows what feeds what: queries in the order of `run --once`, with what each reads and writes. Without Spark."""
    from penstock.actions.graph import graph as graph_action
    from penstock.pipeline.load import find_root

    if mermaid and as_json:
        raise typer.BadParameter("give one of --mermaid and --json", param_hint="--mermaid")
    result = graph_action(project, tuple(pipelines or ()), env)
    if as_json:
        print_json(result.to_json())
    else:
        sys.stdout.write(result.to_mermaid() if mermaid else "\n".join(lines(result)) + "\n")
        show_problems(result.problems, find_root(project) or project, err)
    raise typer.Exit(0 if result.ok else PROBLEMS)


def lines(result: GraphResult) -> Iterator[str]:
    """At most 80 columns wide, unless one name alone is wider."""
    stage = 0
    several = len({query.stage for query in result.queries}) > 1
    for query in result.queries:
        if several and query.stage != stage:
            yield from ("",) if stage else ()
            yield f"stage {query.stage}"
        stage = query.stage
        indent = "  " if several else ""
        tags = f"  [{', '.join(query.tags)}]" if query.tags else ""
        yield f"{indent}{query.full_name}{tags}"
        for end in query.reads:
            yield from _end_lines(f"{indent}  reads  ", end, "←")
        for end in query.writes:
            yield from _end_lines(f"{indent}  writes ", end, "→")


def _end_lines(lead: str, end: End, arrow: str) -> Iterator[str]:
    static = " (static)" if end.is_static else ""
    others = f" {arrow} {', '.join(end.others)}" if end.others else ""
    text = f"{end.name}: {' '.join((end.type, ', '.join(end.places))).strip()}{static}{others}"
    yield from wrap(
        text, WIDTH, initial_indent=lead, subsequent_indent=" " * (len(lead) + 2), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
