"""`penstock explain CODE`: what a code means and how it is mended."""

from __future__ import annotations

import typer

from penstock.cli.options import Json
from penstock.cli.screen import out, print_json


def explain(
    code: str | None = typer.Argument(
        None, help="A code such as `FILES003`; all codes by default.", show_default=False
    ),
    as_json: Json = False,
) -> None:
    """Says why a code is a problem, with a wrong and a right example."""
    from rich.padding import Padding
    from rich.syntax import Syntax

    from penstock.actions.explain import all_explanations, explain_code

    if code is None:
        everything = all_explanations()
        if as_json:
            print_json([explanation.to_json() for explanation in everything])
        else:
            for explanation in everything:
                out.print(f"[bold]{explanation.code}[/]  {explanation.title}", soft_wrap=True)
        return
    explanation = explain_code(code)
    if as_json:
        print_json(explanation.to_json())
        return
    out.print(f"[bold]{explanation.code}[/]  {explanation.title}  [dim]({explanation.severity})[/]")
    if explanation.why:
        out.print(f"\n{explanation.why}", markup=False)
    for title, example in (("Wrong", explanation.wrong), ("Right", explanation.right)):
        if example:
            out.print(f"\n[bold]{title}[/]")
            out.print(Padding(Syntax(example, "yaml", background_color="default", word_wrap=True), (0, 2)))
    if explanation.guide:
        out.print(f"\n[dim]In Spark's Structured Streaming guide:[/] {explanation.guide}")
