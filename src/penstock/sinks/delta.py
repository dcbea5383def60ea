"""A Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.facts.stores import Store, folder_store, table_store
from penstock.lakes.tables import TableText, full_name
from penstock.notation.paths import PathText
from penstock.notation.sql_text import quoted
from penstock.problems import Fault
from penstock.query.guarantees import Guarantee
from penstock.sinks import lake_sql
from penstock.sinks.held import CANNOT_EMPTY, Holding, StorageFor, empty_folder, held_by_delta
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.sinks.upsert import TableWrites, in_a_lake
from penstock.spark_internals import is_delta_table
from penstock.spec import Option, WithSparkOptions, given_options, spark_option, to_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructField

    from penstock.sinks.batch import Batch

_UNFIT = "DELTA002"
_REFUSED = "name another place; for column names with spaces set `table_properties: {delta.columnMapping.mode: name}`"
_WIDEN = "leave the column out in the step, or add it to the table by hand"


class Delta(SinkSpec, TableWrites, WithSparkOptions):
    """A Delta table, at a path or in a catalog; made before the first batch if it is not there. Exactly-once.

    Each commit notes the query and the batch that it holds, whether Spark's own sink or an upsert has made it: a batch
    that is run again after a crash finds the note and writes nothing. A new generation of a checkpoint is a new query,
    so nothing of it is passed over.
    """

    type: Literal["delta"] = "delta"
    path: PathText | None = Field(None, description="The table's folder; local, relative to the project, or a URL.")
    table: TableText | None = Field(None, description="In place of `path`: `table` or `schema.table` in the catalog.")
    partition_by: tuple[str, ...] = Field((), description="Columns that the table is partitioned by.")
    merge_schema: bool = spark_option(False, "Lets the table get columns that it does not have yet.")
    overwrite_schema: bool = spark_option(False, "With `overwrite`: the table takes over the columns of the rows.")
    max_records_per_file: int | None = spark_option(None, "Starts a new file after so many rows.", gt=0)
    table_properties: dict[str, Option] = Field(
        default_factory=dict, description="Properties of a table that is made, such as `delta.enableChangeDataFeed`."
    )

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("exactly-once", "each commit of the table notes the query and the batch that it holds"),
        has_ledger=True,
    )
    example: ClassVar[str] = "{of: counts, type: delta, path: out/counts, write: upsert, keys: [day]}"

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Self:
        if (self.path is None) == (self.table is None):
            raise _wrong("give `path` or `table`, one of them")
        if self.overwrite_schema and self.writes != "overwrite":
            raise _wrong("`overwrite_schema` belongs to `write: overwrite`")
        if self.writes == "upsert" and (self.spark_options or self.max_records_per_file):
            raise _wrong("an upsert takes no options of Spark: `spark_options` and `max_records_per_file` do nothing")
        return self

    @property
    def connectors(self) -> tuple[str, ...]:
        return ("delta",)

    @property
    def stores(self) -> tuple[Store, ...]:
        return (*folder_store(self.path, "delta"), *table_store(self.table))

    @property
    def declared_capabilities(self) -> SinkCapabilities:
        return in_a_lake(self.capabilities, self.writes)

    def held(self, query_id: str, sink: str, storage_for: StorageFor, spark: SparkSession | None) -> Holding | None:
        path = self.path or _location(spark, self.table or "")
        storage = storage_for(path) if path else None
        return held_by_delta(storage, path, query_id) if path and storage else None

    def empty(self, storage_for: StorageFor) -> None:
        if self.path is None:
            raise Fault(CANNOT_EMPTY, f"the table {self.table} is in a catalog of Spark",
                        f"run `DELETE FROM {self.table}` in Spark, then use `--keep-output`", ("table",))  # fmt: skip
        empty_folder(storage_for, self.path)

    def judge(self, rows: DataFrame) -> None:
        spark = rows.sparkSession
        lake_sql.require_columns(rows, self, self.partition_by, _UNFIT)
        target = self._target(spark)
        if not self._exists(spark):
            return
        with lake_sql.refusals_as("DELTA003", f"{target} cannot be opened as a Delta table", _REFUSED):
            detail = spark.sql(f"DESCRIBE DETAIL {target}").select("format", "partitionColumns").collect()[0]
            if detail.format != "delta":
                raise Fault("DELTA003", f"the table {target} is of format {detail.format}, not a Delta table",
                            "name another table, or write to this one with `type: table`", ("table",))  # fmt: skip
        if self.overwrite_schema:
            return
        if self.partition_by and [name.lower() for name in self.partition_by] != list(
            map(str.lower, detail.partitionColumns)
        ):
            has = ", ".join(f"`{name}`" for name in detail.partitionColumns) or "no column"
            raise Fault(_UNFIT, f"the table {target} is partitioned by {has}",
                        "name the same columns, or leave `partition_by` out", ("partition_by",))  # fmt: skip
        self._new_columns(rows)

    def prepare(self, rows: DataFrame) -> None:
        spark = rows.sparkSession
        if self._exists(spark):
            return
        target = self._target(spark)
        properties = {key: to_option(value) for key, value in self.table_properties.items()}
        partitions = [quoted(name) for name in self.partition_by]
        with lake_sql.refusals_as("DELTA003", f"the Delta table {target} cannot be made", _REFUSED):
            spark.sql(lake_sql.create(target, rows.schema, "delta", partitions, properties))

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        # Spark's own sink notes the query id by itself, under the same name as `write` does.
        writer = writer.format("delta").options(**given_options(self))
        return writer.start(self.path) if self.path is not None else writer.toTable(self._target(writer._spark))

    def write(self, rows: DataFrame, batch: Batch) -> None:
        spark = rows.sparkSession
        if not self._exists(spark) or self.batch_sql is not None:
            self.judge(rows)
            self.prepare(rows)
        if self.writes == "upsert":
            if self.merge_schema:  # an append lets Delta add the columns in the commit that needs them; MERGE does not
                self._widen(rows)
            note = "spark.databricks.delta.write.txn"
            settings = {f"{note}AppId": batch.query_id, f"{note}Version": str(batch.number)}
            with lake_sql.misfits_as(_UNFIT, self._target(spark), lambda: self._new_columns(rows)):
                lake_sql.run_merge(rows, self._target(spark), self, settings)
            return
        options = given_options(self) | {"txnAppId": batch.query_id, "txnVersion": str(batch.number)}
        writer = rows.write.format("delta").mode(self.writes).options(**options)
        if self.overwrite_schema and self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        with lake_sql.misfits_as(_UNFIT, self._target(spark), lambda: self.overwrite_schema or self._new_columns(rows)):
            if self.path is not None:
                writer.save(self.path)
            else:
                writer.saveAsTable(self._target(spark))

    def _target(self, spark: SparkSession) -> str:
        """The table in SQL."""
        return f"delta.{quoted(self.path)}" if self.path is not None else full_name(spark, self.table or "")

    def _exists(self, spark: SparkSession) -> bool:
        if self.path is None:
            return spark.catalog.tableExists(self._target(spark))
        return is_delta_table(spark, self.path)

    def _new_columns(self, rows: DataFrame) -> list[StructField]:
        """The columns that the table lacks and may get. Raises Fault if it may not."""
        target = self._target(rows.sparkSession)
        has = rows.sparkSession.table(target).schema
        return lake_sql.missing_columns(target, has, rows.schema, _UNFIT, may_add=self.merge_schema)

    def _widen(self, rows: DataFrame) -> None:
        """Lets the table get the columns that it lacks, if it may. Raises Fault."""
        spark = rows.sparkSession
        target = self._target(spark)
        if new := self._new_columns(rows):
            with lake_sql.refusals_as(_UNFIT, f"the table {target} cannot get new columns", _WIDEN):
                spark.sql(lake_sql.add_columns(target, new))


def _location(spark: SparkSession | None, table: str) -> str | None:
    """Where a table of the catalog is kept; None without Spark, or if there is no such table."""
    if spark is None or not spark.catalog.tableExists(full_name(spark, table)):
        return None
    return str(spark.sql(f"DESCRIBE DETAIL {full_name(spark, table)}").select("location").collect()[0][0])


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("delta", "{message}", {"message": message})
