"""A table of a PostgreSQL database, to join a stream with."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.postgres import UsesPostgres
from penstock.connections.postgres_names import TableName, TableText
from penstock.facts.stores import Store
from penstock.problems import Fault
from penstock.sources.source import SourceCapabilities, SourceSpec
from penstock.spec import WithSparkOptions, given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BOUNDS = ("partition_column", "lower_bound", "upper_bound", "num_partitions")


class Postgres(SourceSpec, UsesPostgres, WithSparkOptions):
    """A table or query of a PostgreSQL database, to join a stream with. Replayable: as the table is.

    Static: Spark asks the database anew for each batch, so a join sees the rows as they are then. A batch that is run
    again sees them as they are by that time.
    """

    type: Literal["postgres"] = "postgres"
    table: TableText | None = Field(None, description="`table` or `schema.table`, in the very case it has there.")
    query: str | None = Field(None, description="A SELECT of PostgreSQL's own SQL, in place of `table`.")
    refresh: Literal["batch"] = Field("batch", description="The rows are always read anew for every batch.")
    partition_column: str | None = spark_option(
        None, "A number, date or timestamp by which the read is split into `num_partitions` at once."
    )
    lower_bound: str | int | float | None = spark_option(
        None, "Where the first part of a split read ends, about; no row is left out by it."
    )
    upper_bound: str | int | float | None = spark_option(
        None, "Where the last part of a split read begins, about; no row is left out by it."
    )
    num_partitions: int | None = spark_option(None, "Parts of a split read: so many connections at once.", gt=0)
    fetch_size: int = spark_option(10_000, "Rows fetched at a time.", gt=0, name="fetchsize")
    query_timeout: int | None = spark_option(None, "Seconds that a read may take.", gt=0)
    session_init_statement: str | None = spark_option(None, "SQL that runs before each read.")
    prefer_timestamp_ntz: bool = spark_option(
        True,
        "A timestamp without time zone is TIMESTAMP_NTZ; false takes it for one in the JVM's zone.",
        name="preferTimestampNTZ",
    )

    example: ClassVar[str] = "{type: postgres, url: 'postgresql://localhost/shop', username: shop, table: cities}"
    capabilities: ClassVar[SourceCapabilities] = SourceCapabilities(asks_service_for_columns=True)

    @model_validator(mode="after")
    def _table_or_query(self) -> Postgres:
        if (self.table is None) == (self.query is None):
            raise PydanticCustomError("postgres_source", "needs `table` or `query`, and not both")
        given = [name for name in _BOUNDS if getattr(self, name) is not None]
        if given and len(given) < len(_BOUNDS):
            missing = ", ".join(f"`{name}`" for name in _BOUNDS if name not in given)
            raise PydanticCustomError("postgres_source", "a split read needs {missing} too", {"missing": missing})
        return self

    @property
    def is_static(self) -> bool:
        return True

    @property
    def stores(self) -> tuple[Store, ...]:
        return (Store("relation", self.table, self.url or "", self.connection),) if self.table else ()

    @property
    def connectors(self) -> tuple[str, ...]:
        return ("postgresql",)

    def probe(self) -> None:
        from psycopg import ProgrammingError, errors

        with self.connected() as connection:
            try:
                connection.execute(f"SELECT * FROM {self._from} LIMIT 0")
            except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
                raise Fault("POSTGRES003", f"PostgreSQL finds no such table: {error.diag.message_primary}",
                            "name a table that is there, in the very case it has there",
                            ("table" if self.table else "query",)) from None  # fmt: skip
            except ProgrammingError as error:
                if isinstance(error, errors.InsufficientPrivilege):
                    raise
                raise Fault("POSTGRES008", f"PostgreSQL refuses the query: {error.diag.message_primary}",
                            "mend the SQL; it is PostgreSQL's, not Spark's", ("query",)) from None  # fmt: skip

    def is_there(self, spark: SparkSession) -> bool:
        try:
            self.probe()
        except Fault as fault:
            if fault.code != "POSTGRES003":
                raise
            return False
        return True

    def load(self, spark: SparkSession) -> DataFrame:
        defaults = {"fetchsize": str(self.fetch_size), "preferTimestampNTZ": str(self.prefer_timestamp_ntz).lower()}
        options = defaults | given_options(self) | self.jdbc_options() | {"dbtable": self._from}
        return spark.read.format("jdbc").options(**options).load()

    @property
    def _from(self) -> str:
        if self.table is not None:
            return TableName.parse(self.table).quoted
        return f"(\n{(self.query or '').strip().rstrip(';')}\n) AS penstock_query"  # it may end with a comment
