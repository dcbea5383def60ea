"""The table that rows go to: found or made, and compared with the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.connections.postgres_names import TableName
from penstock.problems import Fault, did_you_mean
from penstock.sinks.postgres_types import NO_EQUALITY, created_type, is_taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg
    from psycopg import sql
    from pyspark.sql.types import StructType

_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname,
           a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required,
           a.attgenerated <> '' OR a.attidentity = 'a' AS generated, b.typcollation <> 0
    FROM pg_attribute a, LATERAL (
        WITH RECURSIVE base AS (
            SELECT oid, typname, typtype, typbasetype, typcollation FROM pg_type WHERE oid = a.atttypid
            UNION ALL
            SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typcollation
            FROM pg_type t JOIN base ON t.oid = base.typbasetype WHERE base.typtype = 'd'
        )
        SELECT typname, typcollation FROM base WHERE typtype <> 'd'
    ) b
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""


@dataclass(frozen=True)
class TableColumn:
    """A column of the table."""

    name: str
    declared: str
    """Its type with length and precision, as DDL."""
    base: str
    """Its type's name in `pg_type`; of a domain, that of the type below."""
    required: bool
    generated: bool
    collated: bool


@dataclass(frozen=True)
class Target:
    """A table that is there."""

    name: TableName
    oid: int
    columns: tuple[TableColumn, ...]

    def column(self, name: str) -> TableColumn:
        return next(column for column in self.columns if column.name == name)


def find(connection: psycopg.Connection, name: TableName) -> Target:
    """The table as it is now. Raises Fault if it is not there."""
    found = connection.execute("SELECT to_regclass(%s)::oid", [name.quoted]).fetchone()
    if found is None or found[0] is None:
        near = did_you_mean(name.quoted.replace('"', ""), _tables(connection, name))
        raise Fault("POSTGRES003", f"there is no table {name.quoted}{near}",
                    "make the table, or let Penstock make it: `create_table: true`", ("table",))  # fmt: skip
    columns = connection.execute(_COLUMNS, [found[0]]).fetchall()
    return Target(name, found[0], tuple(TableColumn(*column) for column in columns))


def is_there(connection: psycopg.Connection, name: TableName) -> bool:
    found = connection.execute("SELECT to_regclass(%s)", [name.quoted]).fetchone()
    return found is not None and found[0] is not None


def require_creatable(connection: psycopg.Connection, name: TableName, schema: StructType) -> None:
    """Raises Fault if `create` could not make the table for rows of a schema."""
    _definitions(schema)
    if len(name.parts) > 1:
        there = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [name.parts[0]]).fetchone()
        if there is None:
            raise _no_schema(name)


def create(connection: psycopg.Connection, name: TableName, schema: StructType, keys: Sequence[str]) -> None:
    """Makes the table for rows of a schema, if it is not there, with a unique index on the keys. Raises Fault."""
    from psycopg import errors, sql

    columns = _definitions(schema)
    with connection.transaction():
        lock(connection, "tables")
        if is_there(connection, name):
            return
        try:
            body = sql.SQL(", ").join(columns)
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(name.identifier, body))
        except errors.InvalidSchemaName:
            raise _no_schema(name) from None
        if keys:
            # Not a primary key: that would refuse NULL, which is a key like any other to `write: upsert`.
            nulls = sql.SQL(" NULLS NOT DISTINCT" if connection.info.server_version >= 150000 else "")
            indexed = sql.SQL(", ").join(map(sql.Identifier, keys))
            connection.execute(sql.SQL("CREATE UNIQUE INDEX ON {} ({}){}").format(name.identifier, indexed, nulls))


def _definitions(schema: StructType) -> list[sql.Composed]:
    """The columns of a table for rows of a schema, as DDL. Raises Fault."""
    from psycopg import sql

    columns: list[sql.Composed] = []
    for field in schema.fields:
        declared = created_type(field.dataType)
        if declared is None:
            raise Fault("POSTGRES004", f"column `{field.name}` is {field.dataType.simpleString()},"
                        " which PostgreSQL has no type for",
                        f"cast it in the step: `CAST({field.name} AS STRING) AS {field.name}`",
                        ("create_table",))  # fmt: skip
        # The type is one of ours, not of a user.
        columns.append(sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(declared)))
    return columns


def _no_schema(name: TableName) -> Fault:
    return Fault("POSTGRES003", f'there is no schema "{name.parts[0]}"', "make it: `CREATE SCHEMA …`", ("table",))


def lock(connection: psycopg.Connection, what: str) -> None:
    """Until the transaction ends, no other Penstock does the same here. `IF NOT EXISTS` alone fails in a race."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('penstock'), hashtext(%s))", [what])


def columns_for(target: Target, schema: StructType, keys: Sequence[str]) -> tuple[TableColumn, ...]:
    """The table's columns that the rows fill, in the order of the rows. Raises Fault if they do not fit."""
    known = {column.name: column for column in target.columns}
    table = target.name.quoted
    names = [field.name for field in schema.fields]
    for name in names:
        if names.count(name) > 1:
            raise _unfit(f"two columns of the rows are named `{name}`", "name each column once in the step")
    for field in schema.fields:
        column, spark_type = known.get(field.name), field.dataType.simpleString()
        if column is None:
            raise _unfit(f"the table {table} has no column `{field.name}`{did_you_mean(field.name, known)}",
                         "leave the column out in the step, or add it to the table")  # fmt: skip
        if column.generated:
            raise _unfit(f"PostgreSQL itself gives `{field.name}` of the table {table} its values",
                         "leave the column out in the step")  # fmt: skip
        if not is_taken(field.dataType, column.base):
            raise _unfit(f"column `{field.name}` is {spark_type}, and in the table {table} it is {column.declared}",
                         "cast it in the step to a type that fits")  # fmt: skip
    for column in target.columns:
        if column.required and not column.generated and column.name not in names:
            raise _unfit(f"the table {table} needs a value for `{column.name}`, which the rows do not have",
                         "add the column in the step, or give it a DEFAULT in the table")  # fmt: skip
    for key in keys:
        if known[key].base in NO_EQUALITY:
            raise Fault("POSTGRES004", f"the key `{key}` is {known[key].declared}, whose values cannot be compared",
                        "use other `keys`, or make the column `jsonb` or `text`", ("keys",))  # fmt: skip
    return tuple(known[name] for name in names)


def _unfit(message: str, fix: str) -> Fault:
    return Fault("POSTGRES004", message, fix, ("table",))


def _tables(connection: psycopg.Connection, name: TableName) -> list[str]:
    query = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    rows = connection.execute(f"{query} WHERE c.relkind IN ('r', 'p', 'f', 'v') LIMIT 10000").fetchall()
    return [".".join(row[-len(name.parts) :]) for row in rows if not row[0].startswith("pg_")]
