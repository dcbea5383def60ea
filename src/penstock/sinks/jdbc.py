"""A table of any database that has a JDBC driver."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from penstock.facts.stores import Store
from penstock.notation.references import Mask
from penstock.problems import Fault, did_you_mean
from penstock.query.guarantees import Guarantee
from penstock.sinks.held import Holding, StorageFor
from penstock.sinks.jdbc_ledger import ATTEMPT, PARTITION, RUN, Database, JdbcStaged
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.spec import WithSparkOptions, given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sinks.batch import Batch

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PASSWORD = re.compile(r"(?i)(?:password|pwd)=([^&;]+)|//[^/@:]*:([^@/]+)@")
_DRIVERS = {
    "jdbc:db2:": "com.ibm.db2.jcc.DB2Driver",
    "jdbc:derby:": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    "jdbc:h2:": "org.h2.Driver",
    "jdbc:mariadb:": "org.mariadb.jdbc.Driver",
    "jdbc:mysql:": "com.mysql.cj.jdbc.Driver",
    "jdbc:oracle:": "oracle.jdbc.OracleDriver",
    "jdbc:postgresql:": "org.postgresql.Driver",
    "jdbc:sqlserver:": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
}
"""The JVM does not find by itself the drivers of jars that Spark has loaded."""
_AT_LEAST_ONCE = Guarantee("at-least-once", "without a ledger, a batch that is run again is written again")


def _checked_url(url: str) -> str:
    if not url.startswith("jdbc:"):
        raise PydanticCustomError("jdbc_url", "should be a JDBC URL, such as `jdbc:mysql://host:3306/database`")
    return url


def _checked_schema(name: str) -> str:
    if not _PLAIN.fullmatch(name):
        raise PydanticCustomError("jdbc_schema", "should be a plain name: letters, digits and `_`")
    return name


class Jdbc(SinkSpec, WithSparkOptions):
    """A table of any database that has a JDBC driver; rows are added to it. Exactly-once with the ledger.

    Spark writes the batch into a staging table, `penstock_staging_…`. One transaction then takes it into the table and
    notes it in the table `penstock_ledger`: a batch that is run again after a crash finds the note and writes nothing.
    The database must have transactions, and its user the right to make tables. For PostgreSQL, `type: postgres` is
    faster and can do more. Give the driver's jar in `penstock.yaml`: `spark: {spark.jars: …}`.
    """

    type: Literal["jdbc"] = "jdbc"
    url: Annotated[str, AfterValidator(_checked_url)] = spark_option(..., "The URL, as the database's driver takes it.")
    table: str = Field(min_length=1, description="The table, as the database's SQL takes it. It must be there.")
    driver: str | None = spark_option(None, "The driver's class; those of well-known databases are found by the URL.")
    username: str | None = spark_option(None, "The user.", name="user")
    password: str | None = spark_option(None, "The password: a `${REFERENCE}`, so that it stands in no file.")
    ledger: bool = Field(True, description="False adds rows straight to the table: at-least-once, and no other table.")
    ledger_schema: Annotated[str, AfterValidator(_checked_schema)] | None = Field(
        None, description="The schema of the ledger and of the staging table; the user's own by default."
    )
    column_types: str | None = spark_option(
        None,
        "Types in the staging table where Spark's choice cannot be taken over: `name VARCHAR(80), note CHAR(9)`.",
        name="createTableColumnTypes",
    )
    batch_size: int | None = spark_option(None, "Rows sent at a time; Spark's default is 1000.", gt=0, name="batchsize")
    num_partitions: int | None = spark_option(None, "At most so many connections write at once.", gt=0)
    query_timeout: int | None = spark_option(None, "Seconds that a statement may take.", gt=0)

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("exactly-once", "one transaction writes the batch and its note in the ledger"),
        output_modes=frozenset({"append"}),
        native=False,
    )
    example: ClassVar[str] = (
        "{of: counts, type: jdbc, url: 'jdbc:mysql://localhost:3306/shop', username: shop,"
        " password: '${DB_PASSWORD}', table: counts}"
    )

    @property
    def connectors(self) -> tuple[str, ...]:
        return ("postgresql",) if self.url.startswith("jdbc:postgresql:") else ()

    @property
    def stores(self) -> tuple[Store, ...]:
        return (Store("relation", self.table, self.url),)

    @property
    def declared_capabilities(self) -> SinkCapabilities:
        return self.capabilities if self.ledger else replace(self.capabilities, guarantee=_AT_LEAST_ONCE)

    def held(self, query_id: str, sink: str, storage_for: StorageFor, spark: SparkSession | None) -> Holding | None:
        if spark is None or not self.ledger:
            return None
        return Holding(self._database(spark).newest(query_id, sink))

    def judge(self, rows: DataFrame) -> None:
        _fitting(rows.columns, self._database(rows.sparkSession).columns(), self.table)

    def prepare(self, rows: DataFrame) -> None:
        if self.ledger:
            self._database(rows.sparkSession).ensure_ledger()

    def write(self, rows: DataFrame, batch: Batch) -> None:
        from pyspark.sql.functions import lit, spark_partition_id, udf

        if self.batch_sql is not None:
            self.prepare(rows)  # not called before the start
        database = self._database(rows.sparkSession)
        target = _fitting(rows.columns, database.columns(), self.table)
        if not self.ledger:
            database.append(rows.toDF(*target), self.table)
            return
        if database.has(batch):
            return
        staged = JdbcStaged.of(batch, self.ledger_schema, tuple(target))
        # A task may be tried again after it has committed: then its rows are there twice, under two attempts.
        attempt = udf(_attempt, "bigint", useArrow=True).asNondeterministic()(spark_partition_id())
        marks = {RUN: lit(staged.run), PARTITION: spark_partition_id(), ATTEMPT: attempt}
        count = database.stage(rows.toDF(*target).withColumns(marks), staged)
        database.merge(staged, count, self.table, batch)

    def hidden(self, text: str) -> str:
        """The text without passwords, also those that stand in the URL."""
        in_url = {part for found in _PASSWORD.findall(self.url) for part in found if part}
        secrets = in_url | ({self.password} if self.password else set())
        return Mask(secrets, {secret: secret for secret in secrets})(text)

    def _database(self, spark: SparkSession) -> Database:
        driver = next((name for start, name in _DRIVERS.items() if self.url.startswith(start)), None)
        known = {"driver": driver} if driver else {}
        return Database(spark, known | given_options(self), self.table, self.ledger_schema, self.hidden)


def _fitting(names: list[str], known: list[str], table: str) -> list[str]:
    """For each column of the rows the table's, in the table's spelling. Raises Fault."""
    found = []
    for name in names:
        # Most databases take names for equal that differ in case alone; two such columns must be written exactly.
        alike = [column for column in known if column.lower() == name.lower()]
        match = name if name in known else alike[0] if len(alike) == 1 else None
        if match is None:
            near = did_you_mean(name.lower(), map(str.lower, known))
            raise Fault("JDBC003", f"the table {table} has no column `{name}`{near}",
                        "leave the column out in the step, or add it to the table", ("table",))  # fmt: skip
        found.append(match)
    if len(set(found)) < len(found):
        raise Fault("JDBC003", "two columns of the rows mean the same column of the table",
                    "name each column once in the step", ("table",))  # fmt: skip
    return found


def _attempt(partition: int) -> int:
    """The number of the running attempt of a task, unique in a run."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.taskAttemptId() if context is not None else partition
