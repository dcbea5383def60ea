"""What the codes of preparing queries mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHECK003",
        "A pipeline was not judged by Spark because `check --offline` asks no service",
        "Spark must know the columns of a source before it can judge a query. A PostgreSQL table, a schema registry and"
        " positions given for each partition of a topic have to be asked for. Every rule that needs no service was"
        " applied.",
    ),
    Code(
        "CHECK004",
        "A query could not be judged",
        "Penstock failed while it read Spark's plan of the query: a bug in Penstock. The query is not started, and the"
        " others are judged.",
    ),
    Code(
        "SPARK007",
        "A listener cannot be added",
        "`listeners:` names classes of type StreamingQueryListener that take no arguments.",
    ),
)
