"""Files that appear in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.durations import Duration, to_milliseconds
from penstock.formats.any import AnyReadFormat
from penstock.formats.format import INFER
from penstock.paths import PathText, has_glob
from penstock.sources.source import StaticOrStream
from penstock.spec import given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Files(StaticOrStream):
    """Files that appear in a folder, each read once, in the order of their modification time. Replayable: yes.

    A file must appear whole: write it elsewhere, or under a name that starts with `.`, and then rename it.
    A file that grows after it was read is not read again.
    """

    type: Literal["files"] = "files"
    path: PathText = Field(description="A folder or a glob; local, relative to the project, or a Hadoop URL.")
    format: AnyReadFormat = Field(description="`text`, `csv`, `json`, `xml`, `parquet` or `orc`, with its own options.")

    max_files_per_trigger: int | None = spark_option(None, "At most so many new files in a batch.", gt=0)
    max_bytes_per_trigger: int | None = spark_option(
        None, "At most so many new bytes in a batch (one file at least).", gt=0
    )
    latest_first: bool = spark_option(False, "Takes the newest files first: good for a large backlog.")
    max_file_age: Duration | None = spark_option(
        None,
        "After the first batch, files older than the newest one by more than this are passed over; "
        "Spark's default is one week.",
    )
    file_name_only: bool = spark_option(
        False, "Takes a file for read when one of the same name was read before, whatever its folder."
    )
    max_cached_files: int | None = spark_option(
        None, "Listed files kept for the next batches; Spark's default is 10000.", ge=0
    )
    discard_cached_input_ratio: float | None = spark_option(
        None,
        "Lists anew when fewer cached files than this share of a batch are left; Spark's default is 0.2.",
        ge=0,
        le=1,
    )
    clean_source: Literal["off", "delete", "archive"] = spark_option(
        "off", "What becomes of a file once the batch after its own begins."
    )
    source_archive_dir: PathText | None = spark_option(
        None, "Where `clean_source: archive` moves files to; it must lie where the source cannot see it."
    )
    cleaner_threads: int | None = Field(None, ge=0, description="Threads that delete or archive; Spark's default is 1.")

    path_glob_filter: str | None = spark_option(None, "Reads only files whose name matches, such as `*.csv`.")
    recursive_file_lookup: bool = spark_option(
        False, "Reads sub-folders too; `key=value` folders give no columns then."
    )
    base_path: PathText | None = spark_option(None, "The folder below which `key=value` folders give columns.")
    infer_partition_types: bool = Field(
        True, description="Takes `day=7` for a number; false leaves folder columns STRING."
    )
    ignore_corrupt_files: bool | None = spark_option(
        None, "Passes over files that cannot be read. Their rows are lost."
    )
    ignore_missing_files: bool | None = spark_option(None, "Passes over files that were deleted before they were read.")
    ignore_invalid_partition_paths: bool | None = spark_option(
        None, "Passes over folders that do not fit the other `key=value` folders. Their rows are lost."
    )
    modified_before: str | None = spark_option(None, "Static reads only: files modified before `2026-01-31T00:00:00`.")
    modified_after: str | None = spark_option(None, "Static reads only: files modified after `2026-01-01T00:00:00`.")

    example: ClassVar[str] = "{type: files, path: data/orders, format: {type: csv, header: true, schema: 'id BIGINT'}}"

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Files:
        if self.max_files_per_trigger is not None and self.max_bytes_per_trigger is not None:
            raise _wrong("give `max_files_per_trigger` or `max_bytes_per_trigger`, not both")
        if self.clean_source == "archive" and self.source_archive_dir is None:
            raise _wrong("`clean_source: archive` needs `source_archive_dir`, the folder to move files to")
        fixed = self.format.type == "text" or getattr(self.format, "single_variant_column", None) is not None
        if not self.is_static and self.format.schema_ is None and not fixed:
            raise _wrong("a stream of files needs `schema` in its `format`: columns as DDL, or `infer`")
        if not self.is_static and (self.modified_before or self.modified_after):
            raise _wrong("`modified_before` and `modified_after` are for `read: static`; a stream reads every new file")
        if not self.is_static and self.base_path is not None and not has_glob(self.path):
            # Spark takes the path itself for the base then, and fails in the first batch.
            raise _wrong("a stream takes `base_path` only with a glob in `path`: write `in/{day=8}` for `in/day=8`")
        return self

    @property
    def session_settings(self) -> dict[str, str]:
        settings = {}
        if self.format.schema_ == INFER:
            settings["spark.sql.streaming.schemaInference"] = "true"
        if self.cleaner_threads is not None:
            settings["spark.sql.streaming.fileSource.cleaner.numThreads"] = str(self.cleaner_threads)
        if not self.infer_partition_types:
            settings["spark.sql.sources.partitionColumnTypeInference.enabled"] = "false"
        return settings

    def load(self, spark: SparkSession) -> DataFrame:
        options = given_options(self) | given_options(self.format)
        if self.max_file_age is not None:
            options["maxFileAge"] = f"{to_milliseconds(self.max_file_age)}ms"
        reader = self.reader(spark).format(self.format.type).options(**options)
        if self.format.schema_ not in (None, INFER):
            reader = reader.schema(self.format.schema_)
        return reader.load(self.path)


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("files", "{message}", {"message": message})
