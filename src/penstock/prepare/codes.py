"""What the codes of preparing queries mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHAIN004",
        "A source reads what another pipeline is still to make",
        "The table or folder is not there, and a sink of the project makes it. That sink is not part of this run. A"
        " `+` before a pipeline's name runs it with all that feeds it.",
    ),
    Code(
        "CHAIN005",
        "A reader expects another schema than the writer writes",
        "The source declares columns, and the query of the project that feeds it writes others. A column that is"
        " missing would be NULL in every row. A value of another type would make each record a bad one, or stop the"
        " query.",
    ),
    Code(
        "CHAIN006",
        "A pipeline was not judged because what feeds it has Problems",
        "The columns of a source come from another pipeline of the project, which has Problems of its own. Fix those"
        " first, then check again.",
    ),
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
        "CLUSTER003",
        "A folder that the project declares as shared is not shared",
        "Before a run on a cluster, the driver writes a file to each folder that `shared_paths` covers and that the"
        " pipelines use. A task on each executor must read it and write one of its own, which the driver must see. An"
        " executor on another machine would otherwise write rows where nobody reads them. The probe leaves nothing"
        " behind.",
    ),
    Code(
        "CLUSTER004",
        "Whether a shared folder is shared could not be found out",
        "The proof needs a task on every executor within 2 minutes. There is no free core, an executor is busy, or its"
        " Python cannot be used: it must have the driver's minor version. Nothing was started.",
    ),
    Code(
        "SPARK007",
        "A listener cannot be added",
        "`listeners:` names classes of type StreamingQueryListener that take no arguments.",
    ),
)
