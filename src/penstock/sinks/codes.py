"""What the codes of sinks mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHECKPOINT026",
        "The output of a query cannot be emptied",
        "`--empty-output` empties local folders, Delta tables at local paths and PostgreSQL tables.",
    ),
    Code(
        "DELTA002",
        "Rows do not fit into a Delta table",
        "The sink names a column that the rows do not have, the table lacks a column of the rows or needs one that they"
        " do not have, or a type differs. With `merge_schema: true` the table gets the columns that it lacks.",
    ),
    Code(
        "DELTA003",
        "A Delta table cannot be made or opened",
        "There is a table of another format, files that belong to none, or a name that Delta does not take. For columns"
        " with spaces set `table_properties: {delta.columnMapping.mode: name}`.",
    ),
    Code(
        "HTTP001",
        "An HTTP server cannot be reached",
        "Before a run, Penstock opens a connection to the server, or to the proxy, and sends nothing.",
    ),
    Code(
        "HTTP002",
        "Requests do not get through",
        "The server was busy, broken or out of reach until the retries were used up. The batch is not done, and is sent"
        " again on the next run, each record under the same idempotency key.",
    ),
    Code(
        "HTTP003",
        "An HTTP server turns the pipeline away",
        "The answer is about the address or the credentials, not about the record: every record would get it. So none"
        " is put aside, and the batch fails. `stop_on` says which answers are of this kind.",
    ),
    Code(
        "HTTP004",
        "Rows cannot be made into requests",
        "The sink names a column that the rows do not have, or one of a type that no request can hold.",
    ),
    Code(
        "ICEBERG002",
        "Rows do not fit into an Iceberg table",
        "The sink names a column that the rows do not have, the table lacks a column of the rows or needs one that they"
        " do not have, or a type differs. With `merge_schema: true` the table gets the columns that it lacks.",
    ),
    Code(
        "ICEBERG003",
        "An Iceberg table cannot be made or opened",
        "Its catalog is not declared in penstock.yaml, or refuses it.",
    ),
    Code(
        "JDBC001",
        "A database cannot be reached",
        "No driver takes the URL, no server answers there, or it refuses the login.",
    ),
    Code("JDBC002", "A table cannot be read", "The sink adds rows to a table; it does not make one."),
    Code(
        "JDBC003",
        "The rows have a column that the table has not",
        "Columns go by name. Case is not looked at, unless the table has two columns that differ in it alone.",
    ),
    Code(
        "JDBC004",
        "The ledger cannot be made",
        "The table `penstock_ledger` notes which batch is written. Without it a batch may be written twice.",
    ),
    Code(
        "JDBC005",
        "A database refuses the batch",
        "A value does not fit, breaks a constraint, or has a type that the database does not turn into the column's."
        " Nothing of the batch is in the table.",
    ),
    Code(
        "JDBC006",
        "Staged rows are gone",
        "Another run has used the same staging table. The batch was not written; the next run stages it anew.",
    ),
    Code(
        "LEDGER001",
        "The ledger of a sink cannot be used",
        "A ledger notes which batch a sink has, in the sink itself or in the checkpoint. Without it Penstock would not"
        " know, after a crash, what was written already. A ledger that is ahead of the query belongs to another"
        " checkpoint: the query would take new batches for written, and their rows would be lost.",
    ),
    Code(
        "POSTGRES003",
        "A table is not there",
        "Names are taken in the very case they are written in: PostgreSQL itself lowers those without quotes.",
    ),
    Code(
        "POSTGRES004",
        "The rows do not fit the table",
        "Columns go by name. Each column of the rows must be in the table with a type that takes it, and each column"
        " that the table must have must be in the rows.",
    ),
    Code(
        "POSTGRES007",
        "Staged rows are gone",
        "The server crashed while a batch was under way, or another run has used the same staging table. The batch was"
        " not written; the next run stages it anew.",
    ),
    Code("PYTHON001", "The function of a Python sink fails", "It raised, so the batch is not done: it is run again."),
    Code(
        "PYTHON002",
        "A Python sink names nothing that can be called",
        "`each_batch` names a function of two parameters, the rows and the batch. `foreach` names a function of a row,"
        " or a class with a method `process` that takes one.",
    ),
    Code(
        "SINK005",
        "A batch holds several rows of one key",
        "An upsert keeps one row for each key, and nothing says which of the two. The batch is not written.",
    ),
)
