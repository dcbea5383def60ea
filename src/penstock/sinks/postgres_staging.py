"""Rows on their way into PostgreSQL: executors COPY them into a staging table, each attempt of a task under a mark.

A task that is tried again, or twice at once, leaves the rows of every attempt behind. Only the marks that came back to
the driver, one for each partition, count: those rows are merged, and the others are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from penstock.connections.postgres import one_line, refused
from penstock.connections.postgres_names import TableName
from penstock.crash_points import reached
from penstock.notation.sql_text import quoted
from penstock.sinks.postgres_table import TableColumn, lock
from penstock.sinks.postgres_types import spelled
from penstock.sinks.upsert import DELETES

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from psycopg import sql
    from pyspark.sql import DataFrame

MARK = "_penstock_attempt"
_REPORT = "mark BIGINT, rows BIGINT, sqlstate STRING, said STRING"
_OF_THE_DATA = ("22", "23", "42", "P0")
"""Classes of errors that come again however often the task is tried."""


@dataclass(frozen=True)
class Staging:
    """The staging table of one sink of one query, and the columns of its target that are staged."""

    schema: str
    name: str
    columns: tuple[TableColumn, ...]

    @classmethod
    def of(cls, schema: str, query_id: str, sink: str, columns: tuple[TableColumn, ...]) -> Staging:
        digest = sha256(f"{query_id}\0{sink}".encode()).hexdigest()[:16]
        return cls(schema, f"staging_{digest}", columns)

    @property
    def table(self) -> TableName:
        return TableName((self.schema, self.name))

    @property
    def identifier(self) -> sql.Identifier:
        return self.table.identifier

    @property
    def names(self) -> tuple[str, ...]:
        return (MARK, DELETES, *(column.name for column in self.columns))

    def ensure(self, connection: psycopg.Connection) -> None:
        """Makes the table, or makes it anew when the columns of its target have changed."""
        from psycopg import sql

        shape = "\n".join(f"{column.name} {column.declared}" for column in self.columns)
        said = "SELECT obj_description(to_regclass(%s), 'pg_class')"
        if connection.execute(said, [self.table.quoted]).fetchone() == (shape,):
            return
        own = [f"{MARK} bigint NOT NULL", f"{DELETES} boolean NOT NULL"]
        # The types of the target, so that PostgreSQL judges each value when it arrives. Its constraints are judged
        # when the rows are merged: a row that deletes a key needs no more than the key.
        theirs = [
            sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.declared))  # from format_type()
            for column in self.columns
        ]
        body = sql.SQL(", ").join([*map(sql.SQL, own), *theirs])
        with connection.transaction():
            lock(connection, "staging")
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(self.identifier))
            # Unlogged: what a crash of the server takes from it is missed when the rows are counted. Never analysed:
            # the marks of earlier batches would let the planner expect no row of this one.
            made = "CREATE UNLOGGED TABLE {} ({}) WITH (autovacuum_enabled = false)"
            connection.execute(sql.SQL(made).format(self.identifier, body))
            comment = sql.SQL("COMMENT ON TABLE {} IS {}").format(self.identifier, sql.Literal(shape))
            connection.execute(comment)

    def clear(self, connection: psycopg.Connection) -> None:
        """Gives the space back. Only tidiness: rows that stay carry marks that nobody asks for."""
        from psycopg import errors, sql

        try:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '1s'")
                connection.execute(sql.SQL("TRUNCATE {}").format(self.identifier))
        except errors.LockNotAvailable:
            return  # a task that has lost is still writing; the next batch tries again


@dataclass(frozen=True)
class Staged:
    """What lies in the staging table and counts."""

    marks: tuple[int, ...]
    rows: int


def stage(rows: DataFrame, staging: Staging, conninfo: str, delete_when: str | None) -> Staged:
    """Lets the executors COPY the rows. Raises Fault if PostgreSQL refuses a value."""
    from pyspark.sql import functions as f

    deletes = f.coalesce(f.expr(delete_when).cast("boolean"), f.lit(False)) if delete_when else f.lit(False)
    values = [
        spelled(f.col(quoted(column.name)), rows.schema[column.name].dataType, column.base)
        for column in staging.columns
    ]
    # Numbered, for `mapInArrow` fails on names with a dot or a backquote.
    texts = [text.alias(str(number)) for number, text in enumerate([deletes.cast("string"), *values])]
    copied = rows.select(*texts).mapInArrow(copier(conninfo, staging), _REPORT).collect()
    for report in copied:
        if report.said is not None:
            raise refused(report.sqlstate, report.said)
    return Staged(tuple(report.mark for report in copied), sum(report.rows for report in copied))


def copy_statement(staging: Staging) -> str:
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, staging.names))
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(staging.identifier, names).as_string()


Batches = Iterable["pa.RecordBatch"]


def copier(conninfo: str, staging: Staging) -> Callable[[Batches], Batches]:
    """What a task does: one COPY in one transaction, then a report of its mark and rows, or of why it was refused.

    A failure that may pass, such as a lost connection, is raised, so that Spark tries the task again.
    """
    statement, names = copy_statement(staging), staging.names

    def copy(batches: Batches) -> Batches:
        import pyarrow as pa

        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        report = _copied(conninfo, statement, names, first, filled)
        kinds = {"mark": pa.int64(), "rows": pa.int64(), "sqlstate": pa.string(), "said": pa.string()}
        arrays = [pa.array([value], kind) for value, kind in zip(report, kinds.values(), strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=list(kinds))

    return copy


def _copied(
    conninfo: str, statement: str, names: tuple[str, ...], first: pa.RecordBatch, others: Batches
) -> tuple[int, int, str | None, str | None]:
    import secrets
    from itertools import chain

    import psycopg
    import pyarrow as pa
    import pyarrow.csv

    mark, rows = secrets.randbits(63), 0
    # Texts are quoted and NULLs are not: so PostgreSQL tells an empty text from a NULL.
    as_csv = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    marked = first
    try:
        # One transaction: it commits when the block ends well.
        with psycopg.connect(conninfo) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
            for batch in chain([first], others):
                marks = pa.repeat(mark, batch.num_rows)
                marked = pa.RecordBatch.from_arrays([marks, *batch.columns], names=list(names))
                text = pa.BufferOutputStream()
                pa.csv.write_csv(marked, text, as_csv)
                copy.write(text.getvalue())
                rows += batch.num_rows
                reached("in_task")
    except psycopg.Error as error:
        if error.sqlstate is None or not error.sqlstate.startswith(_OF_THE_DATA):
            raise
        return mark, 0, error.sqlstate, _said(error, marked)
    return mark, rows, None, None


def _said(error: psycopg.Error, batch: pa.RecordBatch) -> str:
    """PostgreSQL's words and the column. It does not name the column of a NUL character, so that one is looked for."""
    import pyarrow.compute

    said = one_line("; ".join(filter(None, (error.diag.message_primary, error.diag.context))))
    if error.sqlstate == "22021":
        for name, column in zip(batch.schema.names[1:], batch.columns[1:], strict=True):
            if pyarrow.compute.any(pyarrow.compute.match_substring(column, "\0")).as_py():
                return f"column `{name}` holds a text with a NUL character, which PostgreSQL cannot hold"
    return said
