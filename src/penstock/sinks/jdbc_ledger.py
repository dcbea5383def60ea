"""A database through the JVM's own driver: staging by Spark's JDBC writer, then one transaction with the ledger.

Only SQL that every database knows: no upsert, no `IF NOT EXISTS`, no quotes around names of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from secrets import randbits
from typing import TYPE_CHECKING, Any

from penstock import spark_internals
from penstock.problems import Fault
from penstock.sinks.ledger import is_noted
from penstock.spark_internals import JavaError, JvmError, java_exception

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sinks.batch import Batch

RUN, PARTITION, ATTEMPT = "penstock_run", "penstock_partition", "penstock_attempt"
_LEDGER = "penstock_ledger"
_LEDGER_COLUMNS = "query_id VARCHAR(80) NOT NULL, sink VARCHAR(160) NOT NULL, batch DECIMAL(19) NOT NULL"
_CONNECTION_STATES = ("08", "28")
_AT_ONCE = 500
"""Values in one list: Oracle takes no more than 1000."""
_THIS = "query_id = ? AND sink = ?"


@dataclass(frozen=True)
class JdbcStaged:
    """A batch in its staging table: the table, this very write, and the columns of the target that it fills."""

    table: str
    run: int
    columns: tuple[str, ...]

    @classmethod
    def of(cls, batch: Batch, schema: str | None, columns: tuple[str, ...]) -> JdbcStaged:
        digest = sha256(f"{batch.query_id}\0{batch.sink}".encode()).hexdigest()[:12]
        return cls(_in(schema, f"penstock_staging_{digest}"), randbits(62), columns)


class Database:
    """What a sink does with the database. What the database refuses leaves as a Fault."""

    def __init__(
        self,
        spark: SparkSession,
        options: Mapping[str, str],
        table: str,
        schema: str | None,
        hidden: Callable[[str], str],
    ) -> None:
        self._options, self._hidden, self._table = dict(options), hidden, table
        self._ledger = _in(schema, _LEDGER)
        # Spark's own way to a connection: it finds drivers in the jars of the session, which the JVM's does not.
        try:
            self._jdbc = spark_internals.jdbc_options(spark, {**self._options, "dbtable": table})
        except JavaError as error:
            raise self._fault(error) from None
        self._dialect = spark_internals.jdbc_dialect(spark, self._options["url"])

    def columns(self) -> list[str]:
        """The table's columns, as the database spells them. Raises Fault if the table is not there."""
        with self._connected() as connection:
            query = self._dialect.getSchemaQuery(self._table)
            try:
                about = connection.prepareStatement(query).executeQuery().getMetaData()
            except JavaError as error:
                raise Fault("JDBC002", f"the table {self._table} cannot be read: {self._said(error)}",
                            "make the table, or name one that is there", ("table",)) from None  # fmt: skip
            return [about.getColumnName(number) for number in range(1, about.getColumnCount() + 1)]

    def ensure_ledger(self) -> None:
        """Makes the ledger if it is not there. Safe when several start at once."""
        with self._connected() as connection:
            if self._is_there(connection):
                return
            try:
                _run(connection, f"CREATE TABLE {self._ledger} ({_LEDGER_COLUMNS}, PRIMARY KEY (query_id, sink))")
            except JavaError as error:
                if not self._is_there(connection):  # somebody else may have made it just now
                    raise Fault("JDBC004", f"the ledger {self._ledger} cannot be made: {self._said(error)}",
                                "let the user make tables, name a schema where it may (`ledger_schema`),"
                                " or do without: `ledger: false`", ("ledger",)) from None  # fmt: skip

    def has(self, batch: Batch) -> bool:
        with self._connected() as connection:
            return is_noted(
                self._newest(connection, batch.query_id, batch.sink), batch.number, f"the ledger `{self._ledger}`"
            )

    def newest(self, query_id: str, sink: str) -> int | None:
        """The newest batch in the ledger; None if there is none, or no ledger."""
        with self._connected() as connection:
            newest = self._newest(connection, query_id, sink) if self._is_there(connection) else -1
            return newest if newest >= 0 else None

    def append(self, rows: DataFrame, table: str) -> None:
        with self._refusals():
            rows.write.format("jdbc").options(**{**self._options, "dbtable": table}).mode("append").save()

    def stage(self, rows: DataFrame, staged: JdbcStaged) -> int:
        """Each task writes its rows in a transaction of its own into a table that is made anew. Gives their number."""
        from pyspark.sql import Observation
        from pyspark.sql.functions import count, lit

        seen = Observation()
        counted = rows.observe(seen, count(lit(1)).alias("rows"))
        with self._refusals():
            counted.write.format("jdbc").options(**{**self._options, "dbtable": staged.table}).mode("overwrite").save()
        return int(seen.get["rows"])

    def merge(self, staged: JdbcStaged, rows: int, table: str, batch: Batch) -> None:
        """Takes the staged rows into the table and notes the batch: both or nothing, and once. Raises Fault."""
        quoted = [self._dialect.quoteIdentifier(name) for name in staged.columns]
        run, attempt = map(self._dialect.quoteIdentifier, (RUN, ATTEMPT))
        names = ", ".join(quoted)
        insert = f"INSERT INTO {table} ({names}) SELECT {names} FROM {staged.table} WHERE {run} = ? AND {attempt} IN "
        with self._connected() as connection:
            connection.setAutoCommit(False)
            try:
                if self._advance(connection, batch):
                    taken = 0
                    for some in _slices(self._last_attempts(connection, staged)):
                        taken += _run(connection, f"{insert}({', '.join('?' * len(some))})", staged.run, *some)
                    if taken != rows:
                        connection.rollback()
                        raise Fault("JDBC006", f"{rows} rows were staged, and {taken} of them are left",
                                    "run again: the batch is staged anew. See that no other run uses a copy of this"
                                    " checkpoint")  # fmt: skip
                connection.commit()
            except JavaError as error:
                with suppress(JavaError):  # a connection that is lost has rolled back by itself
                    connection.rollback()
                raise self._fault(error) from None
            connection.setAutoCommit(True)
            with suppress(JavaError):  # tidiness: the next batch makes the table anew anyway
                _run(connection, f"DROP TABLE {staged.table}")

    def _advance(self, connection: Any, batch: Batch) -> bool:
        """Notes the batch, under a lock on its row. False if it is noted already."""
        this = (batch.query_id, batch.sink)
        moved = _run(
            connection,
            f"UPDATE {self._ledger} SET batch = ? WHERE {_THIS} AND batch < ?",
            batch.number,
            *this,
            batch.number,
        )
        if not moved and self._newest(connection, *this) < 0:
            moved = _run(
                connection, f"INSERT INTO {self._ledger} (query_id, sink, batch) VALUES (?, ?, ?)", *this, batch.number
            )
        return moved > 0

    def _last_attempts(self, connection: Any, staged: JdbcStaged) -> list[int]:
        """One attempt for each partition. A task commits all its rows or none, so any that is there is whole."""
        run, partition, attempt = map(self._dialect.quoteIdentifier, (RUN, PARTITION, ATTEMPT))
        query = f"SELECT MAX({attempt}) FROM {staged.table} WHERE {run} = ? GROUP BY {partition}"
        statement = connection.prepareStatement(query)
        try:
            _bind(statement, (staged.run,))
            found = statement.executeQuery()
            attempts = []
            while found.next():
                attempts.append(int(found.getLong(1)))
            return attempts
        finally:
            statement.close()

    def _newest(self, connection: Any, query_id: str, sink: str) -> int:
        """The newest batch in the ledger; -1 if there is none."""
        statement = connection.prepareStatement(f"SELECT batch FROM {self._ledger} WHERE {_THIS}")
        try:
            _bind(statement, (query_id, sink))
            found = statement.executeQuery()
            return int(found.getLong(1)) if found.next() else -1
        finally:
            statement.close()

    def _is_there(self, connection: Any) -> bool:
        try:
            connection.prepareStatement(self._dialect.getSchemaQuery(self._ledger)).executeQuery()
        except JavaError:
            return False
        return True

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            # -1: on the driver, not for a partition.
            connection = self._dialect.createConnectionFactory(self._jdbc).apply(-1)
        except JavaError as error:
            raise Fault("JDBC001", f"the database cannot be reached: {self._said(error)}",
                        "check `url`, `username` and `password`, and that the server runs", ("url",)
                        ) from None  # fmt: skip
        try:
            yield connection
        except JavaError as error:
            raise self._fault(error) from None
        finally:
            with suppress(JavaError):
                connection.close()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Tells what a driver says in Spark's tasks as a Fault; what the rows themselves raise passes."""
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, JvmError) as error:
            java = _java_of(error)
            if java is None:
                raise
            raise self._refused(java) from None

    def _fault(self, error: BaseException) -> Fault:
        return self._refused(_java_of(error) or java_exception(error))

    def _refused(self, java: Any) -> Fault:
        said = self._words(java)
        if "No suitable driver" in said or java.getClass().getName() == "java.lang.ClassNotFoundException":
            return Fault("JDBC001", f"there is no driver for the URL: {said}",
                         "give the driver's jar in penstock.yaml (`spark: {spark.jars: …}`), and its class as `driver`",
                         ("driver",))  # fmt: skip
        if _state(java).startswith(_CONNECTION_STATES):
            return Fault("JDBC001", f"the database cannot be reached: {said}",
                         "check `url`, `username` and `password`, and that the server runs", ("url",))  # fmt: skip
        return Fault("JDBC005", f"the database refuses the batch: {said}",
                     "mend the value in the step, or give the staging table another type: `column_types`",
                     ("table",))  # fmt: skip

    def _said(self, error: BaseException) -> str:
        return self._words(_java_of(error) or java_exception(error))

    def _words(self, java: Any) -> str:
        return self._hidden(" ".join(str(java.getMessage() or java.toString()).split()))


def _in(schema: str | None, table: str) -> str:
    return f"{schema}.{table}" if schema else table


def _slices(values: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def _run(connection: Any, sql: str, *values: Any) -> int:
    statement = connection.prepareStatement(sql)
    try:
        _bind(statement, values)
        return int(statement.executeUpdate())
    finally:
        statement.close()


def _bind(statement: Any, values: Sequence[Any]) -> None:
    for number, value in enumerate(values, start=1):
        if isinstance(value, int):
            statement.setLong(number, value)
        else:
            statement.setString(number, value)


def _java_of(error: BaseException) -> Any:
    """The database's own exception behind an error of Spark: the innermost that the driver has thrown, or None."""
    java, found = java_exception(error), None
    while java is not None:
        if _state(java) or "SQL" in java.getClass().getName():
            found = java
        java = java.getCause()
    return found


def _state(java: Any) -> str:
    try:
        return str(java.getSQLState() or "")
    except Exception:  # noqa: BLE001 - Py4J has no other word for an exception that is not one of a database
        return ""
