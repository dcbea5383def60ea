"""A table of a PostgreSQL database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connections.postgres import UsesPostgres
from penstock.connections.postgres_names import TableName, TableText
from penstock.crash_points import reached
from penstock.facts.stores import Store
from penstock.facts.worker_traceback import with_workers
from penstock.problems import Fault, did_you_mean
from penstock.query.guarantees import Guarantee
from penstock.sinks import lake_sql
from penstock.sinks import postgres_table as tables
from penstock.sinks.held import Holding, StorageFor
from penstock.sinks.postgres_merge import PostgresLedger, merge
from penstock.sinks.postgres_staging import Staged, Staging, stage
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.sinks.upsert import TableWrites, modes_for, winners
from penstock.spark_internals import thrown_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sinks.batch import Batch


class Postgres(SinkSpec, UsesPostgres, TableWrites):
    """A table of a PostgreSQL database, version 13 or later. Exactly-once.

    Executors COPY the batch into a staging table. One transaction then takes it into the table and notes it in
    Penstock's ledger in the same database: a batch that is run again after a crash finds the note and writes nothing.
    """

    type: Literal["postgres"] = "postgres"
    table: TableText = Field(
        description='`table` or `schema.table`, in the very case it has in the database; `"a.b"` for a name with a dot.'
    )
    create_table: bool = Field(
        False, description="Makes the table from the columns of the rows, if it is not there; `keys` get an index."
    )
    # Not `penstock`: a user of that name has the schema of that name before all others, and would make tables there.
    ledger_schema: str = Field(
        "penstock_ledger",
        min_length=1,
        max_length=63,
        description="The schema of the ledger and of the staging tables; it is made if it is not there.",
    )
    max_connections: int | None = Field(
        None, gt=0, description="At most so many tasks write at once; all that Spark has slots for by default."
    )

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("exactly-once", "one transaction writes the batch and its note in the ledger"),
        has_ledger=True,
        native=False,
    )
    example: ClassVar[str] = (
        "{of: counts, type: postgres, url: '${PG_URL:-postgresql://localhost/shop}', table: public.counts,"
        " write: upsert, keys: [day], create_table: true}"
    )

    @property
    def declared_capabilities(self) -> SinkCapabilities:
        return replace(self.capabilities, output_modes=modes_for(self.writes))

    @property
    def stores(self) -> tuple[Store, ...]:
        return (Store("relation", self.table, self.url or "", self.connection),)

    @property
    def _table(self) -> TableName:
        return TableName.parse(self.table)

    @property
    def _ledger(self) -> PostgresLedger:
        return PostgresLedger(self.ledger_schema)

    def probe(self) -> None:
        with self.connected() as connection:
            if not self.create_table:
                tables.find(connection, self._table)

    def held(self, query_id: str, sink: str, storage_for: StorageFor, spark: SparkSession | None) -> Holding | None:
        with self.connected() as connection:
            found = connection.execute("SELECT to_regclass(%s)::oid", [self._table.quoted]).fetchone()
            identity = found[0] if found else None
            newest = self._ledger.newest(connection, query_id, sink)
        return Holding(newest, None if identity is None else str(identity), identity is not None)

    def empty(self, storage_for: StorageFor) -> None:
        from psycopg import sql

        with self.connected() as connection:
            connection.execute(sql.SQL("DELETE FROM {}").format(self._table.identifier))

    def judge(self, rows: DataFrame) -> None:
        self._require_columns(rows)
        with self.connected() as connection:
            if self.create_table and not tables.is_there(connection, self._table):
                tables.require_creatable(connection, self._table, rows.schema)
                return
            tables.columns_for(tables.find(connection, self._table), rows.schema, self.keys)

    def prepare(self, rows: DataFrame) -> None:
        with self.connected() as connection:
            if self.create_table:
                tables.create(connection, self._table, rows.schema, self.keys)
            self._ledger.ensure(connection)

    def write(self, rows: DataFrame, batch: Batch) -> None:
        if self.batch_sql is not None:
            self.judge(rows)  # its columns are not known before
            self.prepare(rows)
        with self.connected() as connection:
            if self._ledger.has(connection, batch):
                return
            target = tables.find(connection, self._table)
            columns = tables.columns_for(target, rows.schema, self.keys)
            staging = Staging.of(self.ledger_schema, batch.query_id, batch.sink, columns)
            staging.ensure(connection)
        if self.latest_by is not None:
            rows = winners(rows, self)
        if self.max_connections is not None:
            rows = rows.coalesce(self.max_connections)
        staged = self._stage(rows, staging)
        reached("before_sink_commit")
        # A connection of its own: the batch may have taken so long that the first one was cut off.
        with self.connected() as connection:
            merge(connection, self._ledger, target, staging, staged, self, batch)
            staging.clear(connection)

    def _stage(self, rows: DataFrame, staging: Staging) -> Staged:
        from pyspark.errors import PythonException

        try:
            return stage(rows, staging, self.conninfo(), self.delete_when)
        except PythonException as error:
            # All tries of a task have failed: if it was the connection, what the worker raised says why.
            for raised in with_workers(thrown_by(error)):
                if raised.python and raised.classes[0].startswith("psycopg."):
                    raise self.unreachable(raised.message) from error
            raise

    def _require_columns(self, rows: DataFrame) -> None:
        for key, names in (("keys", self.keys), ("latest_by", filter(None, [self.latest_by]))):
            for name in names:
                # In the very case, for that is how PostgreSQL tells names apart.
                if name not in rows.columns:
                    raise Fault("POSTGRES004", f"the rows have no column `{name}`{did_you_mean(name, rows.columns)}",
                                f"name a column of the rows in `{key}`", (key,))  # fmt: skip
        lake_sql.require_columns(rows, self, (), "POSTGRES004")
