"""A table of an Iceberg catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.facts.stores import Store, table_store
from penstock.lakes.tables import Moment, TableText, full_name, moment_to_milliseconds, snapshots
from penstock.problems import Fault
from penstock.sources.source import StaticOrStream
from penstock.spec import WithSparkOptions, given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STREAM_ONLY = (
    "from_timestamp", "from_snapshot", "skip_overwrite_snapshots", "skip_delete_snapshots", "max_files_per_batch",
    "max_rows_per_batch",
)  # fmt: skip
_STATIC_ONLY = ("snapshot_id", "as_of_timestamp")
_STREAM_FROM = "stream-from-timestamp"


class Iceberg(StaticOrStream, WithSparkOptions):
    """A table of an Iceberg catalog. Replayable: yes, as long as the table keeps its snapshots.

    A stream gives the rows that snapshots have added, from the oldest one that the table still keeps: rows that came
    with snapshots that have expired since are not among them. A snapshot that changes or removes rows stops it, unless
    it is to be skipped.
    """

    type: Literal["iceberg"] = "iceberg"
    table: TableText = Field(description="`catalog.schema.table`, of a catalog in `penstock.yaml`.")

    from_timestamp: Moment | None = Field(None, description="Begins with the first snapshot from this moment on.")
    from_snapshot: int | None = Field(None, description="Begins with the rows that this snapshot has added.")
    skip_overwrite_snapshots: bool = spark_option(
        False, "Passes over snapshots that change rows.", name="streaming-skip-overwrite-snapshots"
    )
    skip_delete_snapshots: bool = spark_option(
        False, "Passes over snapshots that remove rows.", name="streaming-skip-delete-snapshots"
    )
    max_files_per_batch: int | None = spark_option(
        None, "At most so many files in a batch.", gt=0, name="streaming-max-files-per-micro-batch"
    )
    max_rows_per_batch: int | None = spark_option(
        None, "About so many rows in a batch at most: whole files.", gt=0, name="streaming-max-rows-per-micro-batch"
    )
    snapshot_id: int | None = spark_option(None, "Static reads: the table as of this snapshot.", name="versionAsOf")
    as_of_timestamp: Moment | None = spark_option(
        None, "Static reads: the table as of this moment.", name="timestampAsOf"
    )

    example: ClassVar[str] = "{type: iceberg, table: lake.shop.orders, max_rows_per_batch: 100000}"

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Self:
        for one, other in (("from_timestamp", "from_snapshot"), _STATIC_ONLY):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise _wrong(f"give `{one}` or `{other}`, not both")
        for name in _STREAM_ONLY if self.is_static else _STATIC_ONLY:
            if name in self.model_fields_set:
                raise _wrong(f"`{name}` is for `read: {'stream' if self.is_static else 'static'}`")
        if _STREAM_FROM in self.spark_options:
            raise _wrong("write `from_timestamp` instead of naming `stream-from-timestamp` in `spark_options`")
        return self

    @property
    def connectors(self) -> tuple[str, ...]:
        return ("iceberg",)

    @property
    def stores(self) -> tuple[Store, ...]:
        return table_store(self.table)

    def load(self, spark: SparkSession) -> DataFrame:
        target = full_name(spark, self.table)
        self._require_table(spark, target)
        options = given_options(self)
        if self.from_timestamp is not None:
            options[_STREAM_FROM] = str(moment_to_milliseconds(self.from_timestamp))
        if self.from_snapshot is not None:
            options[_STREAM_FROM] = str(self._moment_of(spark, target, self.from_snapshot, "from_snapshot"))
        if self.snapshot_id is not None:
            self._moment_of(spark, target, self.snapshot_id, "snapshot_id")
        return self.reader(spark).format("iceberg").options(**options).table(target)

    def is_there(self, spark: SparkSession) -> bool:
        from pyspark.errors import AnalysisException

        try:
            return spark.catalog.tableExists(full_name(spark, self.table))
        except AnalysisException:  # so it is when there is no such catalog
            return False

    def _require_table(self, spark: SparkSession, target: str) -> None:
        if not self.is_there(spark):
            raise Fault("ICEBERG001", f"there is no table {target}",
                        "write to it first, name another one, or declare its catalog in penstock.yaml:"
                        " `catalogs: {lake: {type: iceberg, warehouse: lake}}`", ("table",))  # fmt: skip

    def _moment_of(self, spark: SparkSession, target: str, snapshot: int, key: str) -> int:
        """When a snapshot was made. Iceberg knows no other way to begin at it. Raises Fault if it is not kept."""
        found = next((kept for kept in snapshots(spark, target) if kept.id == snapshot), None)
        if found is None:
            raise Fault("ICEBERG004", f"the table {target} does not keep the snapshot {snapshot}: it has expired, was"
                        " rolled back, or never was", f"name one that `SELECT * FROM {target}.snapshots` shows; a query"
                        f" that resumes its checkpoint does not need `{key}`", (key,))  # fmt: skip
        return found.milliseconds


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("iceberg", "{message}", {"message": message})
