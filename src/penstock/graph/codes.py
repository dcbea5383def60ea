"""What the codes of a project's graph mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "PROJECT004",
        "An unknown pipeline, step or tag",
        "A command takes pipelines by their `pipeline:` key or their file, queries and steps as `pipeline.step`, and"
        " `tag:…`. A `+` before a name adds all that feeds it, a `+` behind it all that it feeds.",
    ),
    Code(
        "PROJECT010",
        "A selection without a query",
        "A query is named after the step or source that feeds a sink. A step between others runs only as a part of the"
        " queries that are made from it: `step+` names all of them.",
    ),
)
