"""A Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.facts.stores import Store, folder_store, table_store
from penstock.lakes.tables import Moment, TableText, full_name
from penstock.notation.paths import PathText, is_local, to_local
from penstock.notation.sql_text import quoted
from penstock.problems import Fault
from penstock.sources.delta_lag import DeltaLag
from penstock.sources.lag_meter import LagMeter
from penstock.sources.source import StaticOrStream
from penstock.spark_internals import is_delta_table
from penstock.spec import WithSparkOptions, given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

_STREAM_ONLY = (
    "max_files_per_trigger", "max_bytes_per_trigger", "ignore_changes", "ignore_deletes", "skip_change_commits",
    "exclude_regex", "fail_on_data_loss", "with_event_time_order", "schema_tracking_location",
)  # fmt: skip
_STATIC_ONLY = ("version_as_of", "timestamp_as_of", "ending_version", "ending_timestamp")
_EITHER = (("path", "table"), ("starting_version", "starting_timestamp"), ("ending_version", "ending_timestamp"),
           ("version_as_of", "timestamp_as_of"), ("ignore_changes", "skip_change_commits"))  # fmt: skip


class Delta(StaticOrStream, WithSparkOptions):
    """A Delta table, at a path or in a catalog. Replayable: yes, as long as the table keeps its files (`VACUUM`).

    A stream gives first the rows that the table holds, then those that are added. A commit that changes or removes rows
    stops it, unless one of `skip_change_commits`, `ignore_changes`, `ignore_deletes` says otherwise. With `change_feed`
    it gives every change, in the columns `_change_type`, `_commit_version` and `_commit_timestamp`.
    """

    type: Literal["delta"] = "delta"
    path: PathText | None = Field(None, description="The table's folder; local, relative to the project, or a URL.")
    table: TableText | None = Field(None, description="In place of `path`: `table` or `schema.table` in the catalog.")

    starting_version: int | Literal["latest"] | None = spark_option(
        None, "Begins with what this version has added, or `latest` with what comes from now on."
    )
    starting_timestamp: Moment | None = spark_option(None, "Begins with the first version from this moment on.")
    change_feed: bool = spark_option(
        False, "Gives the changes of rows, which the table must record.", name="readChangeFeed"
    )
    max_files_per_trigger: int | None = spark_option(
        None, "At most so many files in a batch; Delta's default is 1000.", gt=0
    )
    max_bytes_per_trigger: int | str | None = spark_option(None, "About so many bytes in a batch, such as `1g`.")
    skip_change_commits: bool = spark_option(False, "Passes over commits that change or remove rows.")
    ignore_changes: bool = spark_option(
        False, "Gives every row of a file that was rewritten again: those that did not change come twice."
    )
    ignore_deletes: bool = spark_option(False, "Passes over commits that remove whole partitions.")
    exclude_regex: str | None = spark_option(None, "Passes over files whose path matches.")
    fail_on_data_loss: bool = spark_option(True, "Stops if files or versions that are to be read are gone.")
    with_event_time_order: bool = spark_option(
        False, "Reads what the table holds at first in the order of the watermark's column, so that no row is late."
    )
    schema_tracking_location: PathText | None = spark_option(
        None, "A folder for this source alone that notes its schema, so that columns may be renamed and dropped."
    )
    version_as_of: int | None = spark_option(None, "Static reads: the table as of this version.", ge=0)
    timestamp_as_of: Moment | None = spark_option(None, "Static reads: the table as of this moment.")
    ending_version: int | None = spark_option(None, "Static reads of the change feed: the last version.", ge=0)
    ending_timestamp: Moment | None = spark_option(None, "Static reads of the change feed: until this moment.")

    example: ClassVar[str] = "{type: delta, path: out/orders, skip_change_commits: true, max_files_per_trigger: 100}"

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Self:
        if self.path is None and self.table is None:
            raise _wrong("give `path` or `table`, one of them")
        for one, other in _EITHER:
            if getattr(self, one) not in (None, False) and getattr(self, other) not in (None, False):
                raise _wrong(f"give `{one}` or `{other}`, not both")
        if isinstance(self.starting_version, int) and self.starting_version < 0:
            raise _wrong("`starting_version` is 0 or more, or `latest`")
        for name in _STREAM_ONLY if self.is_static else _STATIC_ONLY:
            if name in self.model_fields_set:
                raise _wrong(f"`{name}` is for `read: {'stream' if self.is_static else 'static'}`")
        starts = self.starting_version is not None or self.starting_timestamp is not None
        ends = self.ending_version is not None or self.ending_timestamp is not None
        if self.is_static and self.change_feed and (not starts or self.starting_version == "latest"):
            raise _wrong("a static read of the change feed needs `starting_version` or `starting_timestamp`")
        if self.is_static and (starts or ends) and not self.change_feed:
            raise _wrong("a static read has a start and an end only with `change_feed: true`; see `version_as_of`")
        return self

    @property
    def connectors(self) -> tuple[str, ...]:
        return ("delta",)

    @property
    def stores(self) -> tuple[Store, ...]:
        return (*folder_store(self.path, "delta"), *table_store(self.table))

    @property
    def session_settings(self) -> dict[str, str]:
        if self.schema_tracking_location is None:
            return {}
        # A checkpoint has a new folder for each generation, which the user cannot know.
        return {"spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation": "true"}

    def lag_meter(self) -> LagMeter | None:
        return DeltaLag(to_local(self.path)) if self.path and is_local(self.path) else None

    def load(self, spark: SparkSession) -> DataFrame:
        target = self._target(spark)
        reader = self.reader(spark).format("delta").options(**given_options(self))
        if self.change_feed and not self._records_changes(spark, target):
            raise Fault("DELTA004", f"the table {target} does not record changes",
                        f"ALTER TABLE {target} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true'); what happened"
                        " before stays unknown", ("change_feed",))  # fmt: skip
        return reader.load(self.path) if self.path is not None else reader.table(target)

    def is_there(self, spark: SparkSession) -> bool:
        if self.path is not None:
            return is_delta_table(spark, self.path)
        return spark.catalog.tableExists(full_name(spark, self.table or ""))

    def rows_to_come(self, spark: SparkSession, columns: StructType, partition_by: tuple[str, ...]) -> DataFrame:
        from pyspark.sql.types import StructType

        if self.change_feed:
            columns = StructType([*columns.fields, *(one for one in _changes() if one.name not in columns.names)])
        return super().rows_to_come(spark, columns, partition_by)

    def _target(self, spark: SparkSession) -> str:
        """The table in SQL. Raises Fault if there is none: Spark would speak of a schema that is not set."""
        target = f"delta.{quoted(self.path)}" if self.path is not None else full_name(spark, self.table or "")
        if not self.is_there(spark):
            shown, key = (self.path, "path") if self.path is not None else (target, "table")
            raise Fault("DELTA001", f"there is no Delta table at `{shown}`" if key == "path" else
                        f"there is no table {shown}",
                        "write to it first, or name another one", (key,))  # fmt: skip
        return target

    def _records_changes(self, spark: SparkSession, target: str) -> bool:
        found = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {target}").collect()}
        return str(found.get("delta.enableChangeDataFeed")).lower() == "true"


def _changes() -> list[StructField]:
    """The columns of a change feed beside those of the table."""
    from pyspark.sql.types import LongType, StringType, StructField, TimestampType

    return [
        StructField("_change_type", StringType()),
        StructField("_commit_version", LongType()),
        StructField("_commit_timestamp", TimestampType()),
    ]


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("delta", "{message}", {"message": message})
