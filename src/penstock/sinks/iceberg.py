"""A table of an Iceberg catalog."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.facts.stores import Store, table_store
from penstock.lakes.tables import BATCH, QUERY_ID, TableText, full_name, parts_of, snapshots
from penstock.notation.sql_text import quoted
from penstock.query.guarantees import Guarantee
from penstock.sinks import lake_sql
from penstock.sinks.held import Holding, StorageFor
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.sinks.upsert import TableWrites, in_a_lake
from penstock.spark_internals import iceberg_table, session_of
from penstock.spec import Option, WithSparkOptions, given_options, spark_option, to_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructField

    from penstock.sinks.batch import Batch

_UNFIT = "ICEBERG002"
_REFUSED = "see that its catalog is declared in penstock.yaml: `catalogs: {lake: {type: iceberg, warehouse: lake}}`"
_WIDEN = "leave the column out in the step, or add it to the table by hand"
_TRANSFORM = re.compile(r"(?:(years|months|days|hours)\s*\(|(bucket|truncate)\s*\(\s*(\d+)\s*,)\s*([^()]+?)\s*\)", re.I)


def column_of(partition: str) -> str:
    """`days(at)` → `at`; a plain column is itself."""
    found = _TRANSFORM.fullmatch(partition)
    return found[4] if found else partition


def _checked_partition(partition: str) -> str:
    if "(" in partition and not _TRANSFORM.fullmatch(partition):
        raise PydanticCustomError(
            "partition",
            "should be a column, or `years(c)`, `months(c)`, `days(c)`, `hours(c)`, `bucket(16, c)`, `truncate(4, c)`",
        )
    return partition


Partition = Annotated[str, AfterValidator(_checked_partition)]


class Iceberg(SinkSpec, TableWrites, WithSparkOptions):
    """A table of an Iceberg catalog; made before the first batch if it is not there.

    Exactly-once while the snapshot of the last batch is kept. Each snapshot notes the query and the batch that it
    holds, whether Spark's own sink or an upsert has made it: a batch that is run again after a crash finds the note
    and writes nothing. If `expire_snapshots` has removed that snapshot in between, the batch is written again.
    """

    type: Literal["iceberg"] = "iceberg"
    table: TableText = Field(description="`catalog.schema.table`, of a catalog in `penstock.yaml`.")
    partition_by: tuple[Partition, ...] = Field(
        (), description="How a table that is made is partitioned: columns, `days(at)`, `bucket(16, id)`, …"
    )
    merge_schema: bool = Field(False, description="Lets the table get columns that it does not have yet.")
    fanout: bool | None = spark_option(
        None,
        "Keeps a file open for each partition in place of sorting the rows: quicker, and takes more memory.",
        name="fanout-enabled",
    )
    table_properties: dict[str, Option] = Field(
        default_factory=dict, description="Properties of a table that is made, such as `write.merge.mode`."
    )

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee(
            "exactly-once",
            "each snapshot notes the query and the batch that it holds; it must be kept until the next batch is"
            " written",
        ),
        has_ledger=True,
    )
    example: ClassVar[str] = "{of: counts, type: iceberg, table: lake.shop.counts, write: upsert, keys: [day]}"

    @model_validator(mode="after")
    def _options_are_for_spark(self) -> Self:
        if self.writes == "upsert" and (self.spark_options or self.fanout is not None):
            raise PydanticCustomError(
                "iceberg", "an upsert takes no options of Spark: give the table `table_properties` instead"
            )
        return self

    @property
    def connectors(self) -> tuple[str, ...]:
        return ("iceberg",)

    @property
    def stores(self) -> tuple[Store, ...]:
        return table_store(self.table)

    @property
    def declared_capabilities(self) -> SinkCapabilities:
        able = in_a_lake(self.capabilities, self.writes)
        # Iceberg's own sink cannot add a column: the table would have to get it before the first batch has succeeded.
        return replace(able, native=False) if self.merge_schema else able

    def judge(self, rows: DataFrame) -> None:
        lake_sql.require_columns(rows, self, [column_of(partition) for partition in self.partition_by], _UNFIT)
        if self._exists(rows.sparkSession):
            self._new_columns(rows)

    def held(self, query_id: str, sink: str, storage_for: StorageFor, spark: SparkSession | None) -> Holding | None:
        if spark is None:
            return None
        target = full_name(spark, self.table)
        with lake_sql.refusals_as("ICEBERG003", f"the Iceberg table {target} cannot be found", _REFUSED):
            if not spark.catalog.tableExists(target):
                return Holding(is_there=False)
            newest = _newest_batch(spark, target, query_id)
            return Holding(newest if newest >= 0 else None, str(iceberg_table(spark, target).uuid()))

    def prepare(self, rows: DataFrame) -> None:
        spark = rows.sparkSession
        target = full_name(spark, self.table)
        if not self._exists(spark):
            with lake_sql.refusals_as("ICEBERG003", f"the Iceberg table {target} cannot be made", _REFUSED):
                self._create(spark, target, rows)

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        return (
            writer.format("iceberg").options(**given_options(self)).toTable(full_name(session_of(writer), self.table))
        )

    def write(self, rows: DataFrame, batch: Batch) -> None:
        from pyspark.sql.functions import lit

        spark = rows.sparkSession
        target = full_name(spark, self.table)
        if self.batch_sql is not None or not spark.catalog.tableExists(target):
            self.judge(rows)
            self.prepare(rows)
        if _newest_batch(spark, target, batch.query_id) >= batch.number:
            return
        if self.merge_schema:
            self._widen(rows)
        # As settings, for an option's name loses its upper case on the way, and Iceberg's own sink would not know it.
        prefix = "spark.sql.iceberg.snapshot-property."
        note = {f"{prefix}{QUERY_ID}": batch.query_id, f"{prefix}{BATCH}": str(batch.number)}
        with lake_sql.misfits_as(_UNFIT, target, lambda: self._new_columns(rows)):
            if self.writes == "upsert":
                lake_sql.run_merge(rows, target, self, note)
                return
            writer = rows.writeTo(target).options(**given_options(self))
            with lake_sql.settings_for(spark, note):
                writer.append() if self.writes == "append" else writer.overwrite(lit(True))

    def _exists(self, spark: SparkSession) -> bool:
        target = full_name(spark, self.table)
        with lake_sql.refusals_as("ICEBERG003", f"the Iceberg table {target} cannot be found", _REFUSED):
            return spark.catalog.tableExists(target)

    def _new_columns(self, rows: DataFrame) -> list[StructField]:
        """The columns that the table lacks and may get. Raises Fault if it may not."""
        target = full_name(rows.sparkSession, self.table)
        with lake_sql.refusals_as("ICEBERG003", f"the Iceberg table {target} cannot be read", _REFUSED):
            has = rows.sparkSession.table(target).schema
        return lake_sql.missing_columns(target, has, rows.schema, _UNFIT, may_add=self.merge_schema)

    def _widen(self, rows: DataFrame) -> None:
        """Lets the table get the columns that it lacks, if it may. Raises Fault."""
        target = full_name(rows.sparkSession, self.table)
        if new := self._new_columns(rows):
            with lake_sql.refusals_as(_UNFIT, f"the table {target} cannot get new columns", _WIDEN):
                rows.sparkSession.sql(lake_sql.add_columns(target, new))

    def _create(self, spark: SparkSession, target: str, rows: DataFrame) -> None:
        *namespace, _ = parts_of(self.table)
        schema = ".".join(map(quoted, namespace))
        if len(namespace) > 1 and not spark.catalog.databaseExists(schema):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {schema}")
        properties = {key: to_option(value) for key, value in self.table_properties.items()}
        partitions = [_partition_sql(partition) for partition in self.partition_by]
        spark.sql(lake_sql.create(target, rows.schema, "iceberg", partitions, properties))


def _newest_batch(spark: SparkSession, target: str, query_id: str) -> int:
    """The newest batch of a query that the table holds; -1 if there is none."""
    found = (kept.batch for kept in snapshots(spark, target) if kept.query_id == query_id and kept.batch is not None)
    return next(found, -1)


def _partition_sql(partition: str) -> str:
    found = _TRANSFORM.fullmatch(partition)
    if not found:
        return quoted(partition)
    by_time, by_number, number, column = found.groups()
    return f"{by_time}({quoted(column)})" if by_time else f"{by_number}({number}, {quoted(column)})"
