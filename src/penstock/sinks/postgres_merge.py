"""One transaction that takes a staged batch into its table and notes it in the ledger: all of it or nothing.

Upserts are made of DELETE, UPDATE and INSERT, not of MERGE (PostgreSQL 15 and later only) nor of ON CONFLICT (needs a
unique index, to which two NULLs differ). `IS NOT DISTINCT FROM` would be null-safe in one statement, but PostgreSQL can
neither hash nor index it: so the rows are taken by which of their keys are NULL, and the other keys compare with `=`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.problems import Fault
from penstock.sinks.ledger import is_noted
from penstock.sinks.postgres_staging import MARK, Staged, Staging
from penstock.sinks.postgres_table import Target, lock
from penstock.sinks.upsert import DELETES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg
    from psycopg import sql

    from penstock.sinks.batch import Batch
    from penstock.sinks.upsert import TableWrites

_LEDGER = "ledger"
_TRIES = 3
"""Another client of the table may get in the way; then the whole transaction is tried again."""


@dataclass(frozen=True)
class PostgresLedger:
    """For each sink of each query, the newest batch that is in its table. Lives in the same database as the table."""

    schema: str

    @property
    def identifier(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(self.schema, _LEDGER)

    def ensure(self, connection: psycopg.Connection) -> None:
        """Makes schema and table if they are not there. Safe when several start at once."""
        from psycopg import sql

        with connection.transaction():
            lock(connection, "ledger")
            # Asked first: `IF NOT EXISTS` wants the right to create even where nothing is to be created.
            found = connection.execute(
                "SELECT 1 FROM pg_namespace WHERE nspname = %s"
                " UNION ALL SELECT 2 FROM pg_tables WHERE schemaname = %s AND tablename = %s",
                [self.schema, self.schema, _LEDGER],
            ).fetchall()
            if (1,) not in found:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
            if (2,) not in found:
                columns = "query_id text, sink text, batch bigint NOT NULL, at timestamptz NOT NULL"
                made = sql.SQL(f"CREATE TABLE {{}} ({columns}, PRIMARY KEY (query_id, sink))")
                connection.execute(made.format(self.identifier))

    def has(self, connection: psycopg.Connection, batch: Batch) -> bool:
        from psycopg import sql

        query = sql.SQL("SELECT batch FROM {} WHERE query_id = %s AND sink = %s").format(self.identifier)
        newest = connection.execute(query, [batch.query_id, batch.sink]).fetchone()
        return newest is not None and is_noted(int(newest[0]), batch.number, f"the ledger `{self.schema}.{_LEDGER}`")

    def newest(self, connection: psycopg.Connection, query_id: str, sink: str) -> int | None:
        """The newest batch that is noted; None if there is none, or no ledger."""
        from psycopg import sql

        there = connection.execute(
            "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s", [self.schema, _LEDGER]
        ).fetchone()
        if there is None:
            return None
        query = sql.SQL("SELECT batch FROM {} WHERE query_id = %s AND sink = %s").format(self.identifier)
        found = connection.execute(query, [query_id, sink]).fetchone()
        return None if found is None else int(found[0])

    def advance(self, connection: psycopg.Connection, batch: Batch) -> bool:
        """Notes the batch, and keeps others from doing so until the transaction ends. False if it is noted already."""
        from psycopg import sql

        note = sql.SQL(
            "INSERT INTO {} AS known (query_id, sink, batch, at) VALUES (%s, %s, %s, now())"
            " ON CONFLICT (query_id, sink) DO UPDATE SET batch = excluded.batch, at = excluded.at"
            " WHERE known.batch < excluded.batch RETURNING 1"
        ).format(self.identifier)
        return connection.execute(note, [batch.query_id, batch.sink, batch.number]).fetchone() is not None


def merge(
    connection: psycopg.Connection,
    ledger: PostgresLedger,
    target: Target,
    staging: Staging,
    staged: Staged,
    spec: TableWrites,
    batch: Batch,
) -> None:
    """Takes the staged rows into the table, once. Raises Fault; then nothing has changed."""
    from psycopg import errors
    from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

    lost_to_another = retry_if_exception_type((errors.DeadlockDetected, errors.SerializationFailure))
    for attempt in Retrying(retry=lost_to_another, stop=stop_after_attempt(_TRIES), reraise=True):
        with attempt, connection.transaction():
            if not ledger.advance(connection, batch):
                return
            _require_all(connection, staging, staged)
            if spec.writes == "upsert":
                # Two queries that upsert into one table wait for each other; other clients are not held up.
                lock(connection, f"upsert {target.oid}")
                _require_one_row_per_key(connection, staging, staged, spec)
            for statement in statements(connection, target, staging, staged, spec):
                connection.execute(statement)


def statements(
    connection: psycopg.Connection, target: Target, staging: Staging, staged: Staged, spec: TableWrites
) -> Iterator[sql.Composed]:
    """What changes the table, in order."""
    from psycopg import sql

    names = [column.name for column in staging.columns]
    table, source = target.name.identifier, staging.identifier
    into = sql.SQL(", ").join(map(sql.Identifier, names))
    values = sql.SQL(", ").join(sql.Identifier("s", name) for name in names)
    insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} s WHERE {}")
    if spec.writes != "upsert":
        if spec.writes == "overwrite":
            # Not TRUNCATE: readers would have to wait, and one with an older snapshot would find the table empty.
            yield sql.SQL("DELETE FROM {}").format(table)
        yield insert.format(table, into, values, source, _counts(staged))
        return
    others = [name for name in names if name not in spec.keys]
    changes = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Identifier("s", name)) for name in others
    )
    removes = sql.Identifier("s", DELETES)
    for nulls in _null_patterns(connection, staging, staged, spec.keys):
        these = sql.SQL(" AND ").join([_counts(staged), _pattern(spec.keys, nulls)])
        matched = sql.SQL(" AND ").join([these, _match(spec.keys, nulls), _not_older(target, spec)])
        if spec.delete_when is not None:
            yield sql.SQL("DELETE FROM {} t USING {} s WHERE {} AND {}").format(table, source, matched, removes)
        if others:
            yield sql.SQL("UPDATE {} t SET {} FROM {} s WHERE {} AND NOT {}").format(
                table, changes, source, matched, removes
            )
        known = sql.SQL("SELECT 1 FROM {} t WHERE {}").format(table, _match(spec.keys, nulls))
        new = sql.SQL("{} AND NOT {} AND NOT EXISTS ({})").format(these, removes, known)
        yield insert.format(table, into, values, source, new)


def _counts(staged: Staged) -> sql.Composed:
    from psycopg import sql

    # Written out, not a parameter: beside one, a `%` in the name of a column would be taken for another.
    marks = sql.SQL("ARRAY[{}]::bigint[]").format(sql.SQL(", ").join(map(sql.Literal, staged.marks)))
    return sql.SQL("{} = ANY({})").format(sql.Identifier("s", MARK), marks)


def _pattern(keys: Sequence[str], nulls: Sequence[bool]) -> sql.Composable:
    """The rows that have NULL in just these keys."""
    from psycopg import sql

    return sql.SQL(" AND ").join(
        sql.SQL("{} IS NULL" if null else "{} IS NOT NULL").format(sql.Identifier("s", key))
        for key, null in zip(keys, nulls, strict=True)
    )


def _match(keys: Sequence[str], nulls: Sequence[bool]) -> sql.Composable:
    from psycopg import sql

    return sql.SQL(" AND ").join(
        sql.SQL("{} IS NULL").format(sql.Identifier("t", key))
        if null
        else sql.SQL("{} = {}").format(sql.Identifier("t", key), sql.Identifier("s", key))
        for key, null in zip(keys, nulls, strict=True)
    )


def _not_older(target: Target, spec: TableWrites) -> sql.Composable:
    """NULL is older than everything. Texts compare by their bytes, as in Spark, whatever the database's language."""
    from psycopg import sql

    if spec.latest_by is None:
        return sql.SQL("true")
    collated = sql.SQL(' COLLATE "C"' if target.column(spec.latest_by).collated else "")
    new, old = (sql.SQL("{}{}").format(sql.Identifier(side, spec.latest_by), collated) for side in ("s", "t"))
    return sql.SQL("({} IS NULL OR {} >= {})").format(sql.Identifier("t", spec.latest_by), new, old)


def _null_patterns(
    connection: psycopg.Connection, staging: Staging, staged: Staged, keys: Sequence[str]
) -> list[tuple[bool, ...]]:
    """Which keys are NULL together, in all rows that count: one pattern in most batches."""
    from psycopg import sql

    nulls = sql.SQL(", ").join(sql.SQL("{} IS NULL").format(sql.Identifier("s", key)) for key in keys)
    query = sql.SQL("SELECT DISTINCT {} FROM {} s WHERE {}").format(nulls, staging.identifier, _counts(staged))
    return sorted(connection.execute(query).fetchall())


def _require_all(connection: psycopg.Connection, staging: Staging, staged: Staged) -> None:
    """Every row that a task reported must still be there: an unlogged table is empty after a crash of the server."""
    from psycopg import sql

    query = sql.SQL("SELECT count(*) FROM {} s WHERE {}").format(staging.identifier, _counts(staged))
    found = connection.execute(query).fetchone()
    if found != (staged.rows,):
        raise Fault("POSTGRES007", f"{staged.rows} rows were staged, and {found[0] if found else 0} of them are left",
                    "run again: the batch is staged anew. See that no other run uses a copy of this checkpoint"
                    )  # fmt: skip


def _require_one_row_per_key(
    connection: psycopg.Connection, staging: Staging, staged: Staged, spec: TableWrites
) -> None:
    from psycopg import sql

    keys = sql.SQL(", ").join(sql.Identifier("s", key) for key in spec.keys)
    query = sql.SQL("SELECT count(*), {} FROM {} s WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1").format(
        keys, staging.identifier, _counts(staged), keys
    )
    twice = connection.execute(query).fetchone()
    if twice is None:
        return
    named = ", ".join(f"{key}={value!r}" for key, value in zip(spec.keys, twice[1:], strict=True))
    if spec.latest_by is None:
        fix = "name the column whose greatest value wins: `latest_by: <column>`; or group by the keys"
    else:
        fix = "these differ in Spark and are equal in PostgreSQL: make them equal in the step, with `lower` or `trim`"
    raise Fault("SINK005", f"the batch holds {twice[0]} rows of the key {named}", fix, ("keys",))
