"""What the codes of sources mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code("DELTA001", "There is no such Delta table", "A stream reads a table that is there, for it takes its columns."),
    Code(
        "DELTA004",
        "A Delta table does not record changes",
        "A change feed holds what was recorded when the change was made; it cannot be asked for afterwards.",
    ),
    Code("ICEBERG001", "There is no such Iceberg table", "Neither the table nor, it may be, its catalog is known."),
    Code(
        "ICEBERG004",
        "An Iceberg table does not keep a snapshot",
        "Snapshots expire. A stream that should begin at one that is gone would begin elsewhere without a word.",
    ),
    Code(
        "FILES013",
        "Spark would read files twice through a link",
        "With `recursive_file_lookup` Spark follows links to folders, and takes a file that it finds under two paths"
        " for two files. Through two links to one folder, each row comes twice. A link to a folder above it gives the"
        " same files under a new path until the system refuses a path with more than 40 links: each row comes 41 times."
        " Penstock looks for such links at each start, not during a run.",
    ),
    Code(
        "KAFKA004",
        "Records are gone before they were read",
        "The topic's retention, or somebody, has deleted records that the checkpoint has not read yet, or the topic was"
        " deleted and made anew. To go on behind the gap without a word would hide the loss.",
    ),
    Code(
        "POSTGRES008",
        "PostgreSQL refuses a query",
        "`query` of a source is PostgreSQL's own SQL, and it cannot be run.",
    ),
    Code(
        "SCHEMA001",
        "A schema cannot be inferred",
        "A living schema begins with the files that are there, or with `schema_hints`. There are neither, no column was"
        " found, or the hints are not columns with their types.",
    ),
    Code(
        "SCHEMA002",
        "New columns have come",
        "`on_new_columns: fail` asks to stop then. Nothing of the batch is written; the next run stops at it again.",
    ),
    Code(
        "SCHEMA003",
        "A batch was refused, and nothing new is in it",
        "The files of the batch have changed since, or are gone. Penstock ends the query: it would be refused again.",
    ),
    Code(
        "SCHEMA004",
        "State cannot take new columns",
        "The query's state holds whole rows, of `dropDuplicates()` without keys for one. Rows with new columns do not"
        " fit the state that the checkpoint has.",
    ),
    Code(
        "SCHEMA005",
        "A column has two types",
        "A Parquet file holds a column in a type that cannot be read as that of the schema. Spark reads a column of all"
        " files in one type, so no row of that file can be read.",
    ),
    Code(
        "SCHEMA006",
        "A schema cannot be kept",
        "The versions of a living schema are small files in `schema_location`, which must be there at every run.",
    ),
)
