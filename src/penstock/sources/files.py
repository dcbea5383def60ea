"""Files that appear in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast
from urllib.parse import unquote

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.facts.failure import Failure
from penstock.facts.stores import Store, folder_store
from penstock.formats.any import AnyReadFormat
from penstock.formats.format import INFER
from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.paths import PathText, has_glob, is_local, is_within, to_local
from penstock.sources import file_records, link_loops
from penstock.sources.beginning import Beginning, after_files
from penstock.sources.files_lag import FilesLag
from penstock.sources.lag_meter import LagMeter
from penstock.sources.living.csv_rows import READ_OPTIONS
from penstock.sources.not_yet_written import empty_folder, to_ddl
from penstock.sources.source import Decoded, SourceCapabilities, StaticOrStream
from penstock.spec import given_options, spark_option
from penstock.storage.hadoop import HadoopStorage
from penstock.storage.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


LIVING_FORMATS = ("csv", "json", "parquet")


class Files(Decoded, StaticOrStream):
    """Files that appear in a folder, each read once, in the order of their modification time. Replayable: yes.

    - A file must appear whole: write it elsewhere, or under a name that starts with `.`, and then rename it.
      A file that grows after it was read is not read again.
    - A record of csv, json or xml that cannot be parsed, or does not fit `schema`, stops the query unless
      `on_bad_record` says otherwise. Where the format has a `mode` or a column for corrupt records, Spark does as they
      say, and Penstock does not judge.
    - With `on_new_columns` the schema lives. It is inferred from the files that are there, kept in versions under
      `schema_location`, and outlives the run.

    What becomes of a batch under a living schema:

    - `add`: a batch with a new column is refused before anything of it is written. The column joins the schema, and the
      query starts itself anew with the same batch: no row is lost or repeated.
    - `rescue`: the schema stays. New columns go to the column `_rescued`, as JSON with the path of the file.
    - `fail`: a new column stops the query. `ignore`: new columns are dropped.
    - A value that does not fit its column is NULL, and goes to `_rescued`, under `add` and `rescue`; under `fail` and
      `ignore` it makes a bad record. A column never changes its type, and one that files lose is NULL.
    - Parquet: a column whose type in a file cannot be read as that of the schema stops the query.
    - A column that differs from a known one in upper and lower case alone is rescued, never added.
    - Inferred CSV columns are STRING, unless the format has `infer_schema: true`; `schema_hints` give the rest.
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
    ignore_missing_files: bool | None = spark_option(
        None,
        "Passes over files that were deleted before they were read. The run counts those that were gone when their"
        " batch began, as `missing_files`.",
    )
    ignore_invalid_partition_paths: bool | None = spark_option(
        None, "Passes over folders that do not fit the other `key=value` folders. Their rows are lost."
    )
    modified_before: str | None = spark_option(None, "Static reads only: files modified before `2026-01-31T00:00:00`.")
    modified_after: str | None = spark_option(None, "Static reads only: files modified after `2026-01-01T00:00:00`.")

    on_new_columns: Literal["add", "rescue", "fail", "ignore"] | None = Field(
        None,
        description="Gives a stream of csv, json or parquet a schema that lives, and says what becomes of columns that"
        " it lacks: `add` takes them up, `rescue` puts them into `_rescued`, `fail` stops, `ignore` drops them.",
    )
    schema_hints: str | None = Field(
        None,
        description="Living schemas: columns and types that you are sure of, as DDL, such as `amount DECIMAL(10,2)`."
        " The others are inferred.",
        min_length=1,
    )
    schema_location: PathText | None = Field(
        None,
        description="Living schemas: the folder that keeps the versions. By default one in the project's `storage`.",
    )
    sample_files: int = Field(1_000, gt=0, description="Living schemas: at most so many files are looked at at first.")
    rescued_column: str = Field(
        "_rescued",
        min_length=1,
        description="Living schemas: the STRING column for what did not fit, as JSON; NULL where all did.",
    )

    example: ClassVar[str] = "{type: files, path: data/orders, format: {type: csv, header: true, schema: 'id BIGINT'}}"

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Files:
        for wrong in (*_limits(self), *_reads(self), *_records(self), *_lives(self)):
            raise PydanticCustomError("files", "{message}", {"message": wrong})
        return self

    @property
    def lives(self) -> bool:
        """Has it a schema that lives?"""
        return self.on_new_columns is not None

    @property
    def rescues(self) -> bool:
        """Does it have the rescued column?"""
        return self.on_new_columns in ("add", "rescue")

    @property
    def judges_records(self) -> bool:
        """Are its records judged by Penstock, and not as the format's own keys say?"""
        decoded = self.format.type in file_records.DECODED_FORMATS
        return decoded and ("on_bad_record" in self.model_fields_set or _own_judgement(self) is None)

    @property
    def stores(self) -> tuple[Store, ...]:
        return folder_store(self.path)

    @property
    def arrival(self) -> str | None:
        return None if self.lives else "_metadata.file_modification_time"

    @property
    def session_settings(self) -> dict[str, str]:
        settings = {}
        if self.format.schema_ == INFER and not self.lives:
            settings["spark.sql.streaming.schemaInference"] = "true"
        if self.cleaner_threads is not None:
            settings["spark.sql.streaming.fileSource.cleaner.numThreads"] = str(self.cleaner_threads)
        if not self.infer_partition_types:
            settings["spark.sql.sources.partitionColumnTypeInference.enabled"] = "false"
        return settings

    def beginning(self, moment_ms: int | None) -> Beginning | None:
        return None if self.lives else after_files(self.path, self.path_glob_filter, moment_ms)

    def keeping(self, folder: str) -> Files:
        return self.model_copy(update={"schema_location": self.schema_location or folder}) if self.lives else self

    def options(self) -> dict[str, str]:
        """What Spark gets to know of the folder, apart from the format."""
        options = given_options(self)
        if self.max_file_age is not None:
            options["maxFileAge"] = f"{to_milliseconds(self.max_file_age)}ms"
        return options

    def lag_meter(self) -> LagMeter | None:
        picks = self.path_glob_filter or self.max_file_age or self.file_name_only or has_glob(self.path)
        return None if picks or not is_local(self.path) else FilesLag(to_local(self.path))

    def load(self, spark: SparkSession) -> DataFrame:
        from penstock.sources.living import living

        if self.recursive_file_lookup:
            link_loops.require_none(self.path)
        if self.lives:
            return living.load(self, spark)
        if not self.judges_records:
            return self._loaded(spark, {}, self.format.schema_)
        return file_records.with_verdict(self._with_corrupt(spark), self.format.type)

    def is_there(self, spark: SparkSession) -> bool:
        storage: Storage = LocalStorage() if is_local(self.path) else HadoopStorage(spark)
        if self.format.schema_ not in (None, INFER) or self.format.type == "text" or has_glob(self.path):
            return storage.exists(self.path)
        # Its columns are found in its files, so there must be some.
        return any(not entry.name.startswith(("_", ".")) for entry in storage.entries(self.path))

    def rows_to_come(self, spark: SparkSession, columns: StructType, partition_by: tuple[str, ...]) -> DataFrame:
        """Read as they will be, from an empty folder: a bad record has its reason there too."""
        from pyspark.sql.types import StringType, StructField, StructType

        declared = self.format.schema_
        if declared not in (None, INFER):
            known = cast("StructType", StructType.fromDDL(declared))
            have = {name.lower() for name in known.names}
            folders = [one for one in columns.fields if one.name in partition_by and one.name.lower() not in have]
            columns = StructType([*known.fields, *folders])
        elif self.rescues:
            columns = StructType([*columns.fields, StructField(self.rescued_column, StringType())])
        form = self.format
        if form.type != "text" and getattr(form, "single_variant_column", None) is None:
            form = form.model_copy(update={"schema_": to_ddl(columns)})
        fixed = {"path": empty_folder(), "format": form, "on_new_columns": None, "base_path": None}
        return self.model_copy(update=fixed).load(spark)

    @property
    def declared_capabilities(self) -> SourceCapabilities:
        return replace(
            self.capabilities,
            # Spark passes over columns of Parquet files that the schema lacks: only a look at the footers finds them.
            checks_batches=self.lives and self.format.type == "parquet",
            refuses_batches=self.lives and self.on_new_columns in ("add", "fail"),
        )

    def before_batch(self, spark: SparkSession, checkpoint: str, batch: int) -> None:
        from penstock.sources.living import living

        if self.lives:
            living.before_batch(self, spark, checkpoint, batch)

    def recover(self, failure: Failure, spark: SparkSession, checkpoint: str) -> bool:
        from penstock.sources.living import living

        if self.lives:
            return living.recover(self, failure, spark, checkpoint)
        # Static files are listed once: after a restart those that took the place of the missing ones are found.
        refreshed = self.is_static and self.refresh is not None
        gone = failure.kind == "missing_file" and any(is_within(self.path, unquote(path)) for path in failure.paths)
        return refreshed and gone

    def _loaded(self, spark: SparkSession, options: dict[str, str], schema: Any) -> DataFrame:
        given = self.options() | given_options(self.format) | options
        reader = self.reader(spark).format(self.format.type).options(**given)
        if schema not in (None, INFER):
            reader = reader.schema(schema)
        return reader.load(self.path)

    def _with_corrupt(self, spark: SparkSession) -> DataFrame:
        """The rows with the text of those that cannot be parsed."""
        from pyspark.sql.types import StringType, StructField, StructType, VariantType

        options = file_records.parsing_options(self.format.type)
        variant = getattr(self.format, "single_variant_column", None)
        if variant is not None:
            schema = StructType([StructField(variant, VariantType())])
        elif self.format.schema_ in (None, INFER):
            schema = self._loaded(spark, options, self.format.schema_).schema
        else:
            schema = cast("StructType", StructType.fromDDL(self.format.schema_))
        fields = [field for field in schema.fields if field.name != file_records.CORRUPT]
        with_corrupt = StructType([*fields, StructField(file_records.CORRUPT, StringType())])
        return self._loaded(spark, options, with_corrupt)


def _limits(files: Files) -> Iterator[str]:
    if files.max_files_per_trigger is not None and files.max_bytes_per_trigger is not None:
        yield "give `max_files_per_trigger` or `max_bytes_per_trigger`, not both"
    if files.clean_source == "archive" and files.source_archive_dir is None:
        yield "`clean_source: archive` needs `source_archive_dir`, the folder to move files to"


def _reads(files: Files) -> Iterator[str]:
    fixed = files.format.type == "text" or getattr(files.format, "single_variant_column", None) is not None
    if not files.is_static and files.format.schema_ is None and not fixed and not files.lives:
        yield "a stream of files needs `schema` in its `format`: columns as DDL, or `infer`; or `on_new_columns` here"
    if not files.is_static and (files.modified_before or files.modified_after):
        yield "`modified_before` and `modified_after` are for `read: static`; a stream reads every new file"
    if not files.is_static and files.base_path is not None and not has_glob(files.path):
        # Spark takes the path itself for the base then, and fails in the first batch.
        yield "a stream takes `base_path` only with a glob in `path`: write `in/{day=8}` for `in/day=8`"
    if files.refresh is not None and not files.is_static:
        yield "`refresh` is for `read: static`; a stream reads every new file"
    if files.refresh == "batch":
        yield (
            "Spark lists static files once, so they cannot be read anew for each batch: give `refresh` a duration,"
            " such as `1 hour`, after which the query starts anew"
        )


def _records(files: Files) -> Iterator[str]:
    if "on_bad_record" in files.model_fields_set:
        if files.format.type not in file_records.DECODED_FORMATS:
            yield f"`on_bad_record` is for csv and json, not for {files.format.type}"
        elif own := _own_judgement(files):
            yield f"`on_bad_record` and {own} both say what becomes of a bad record: keep one of them"
    if files.judges_records and getattr(files.format, "column_pruning", None):
        yield "`column_pruning: true` hides bad records: leave it out, or say `mode: permissive` to do without a check"


def _lives(files: Files) -> Iterator[str]:
    if files.on_new_columns is None:
        for key in ("schema_hints", "schema_location", "sample_files", "rescued_column"):
            if key in files.model_fields_set:
                yield f"`{key}` belongs to a living schema: it needs `on_new_columns`"
        return
    if files.is_static:
        yield "`on_new_columns` is for streams; `read: static` infers the schema at each start"
    if files.format.type not in LIVING_FORMATS:
        yield f"`on_new_columns` knows csv, json and parquet, not {files.format.type}"
    if files.format.schema_ not in (None, INFER):
        yield "a fixed `schema` does not live: leave it out, and name the types that you are sure of in `schema_hints`"
    if own := _own_judgement(files):
        yield f"{own} has no place in a living schema: `on_bad_record` says what becomes of a bad record"
    if getattr(files.format, "single_variant_column", None) is not None:
        yield "`single_variant_column` holds whatever comes: it needs no `on_new_columns`"
    if files.format.type == "csv":
        if not getattr(files.format, "header", None):
            yield "a living schema goes by names: CSV needs `header: true`"
        for key in sorted(files.format.model_fields_set - READ_OPTIONS):
            yield f"`{key}` is not heeded under a living schema"


def _own_judgement(files: Files) -> str | None:
    """The key of the format by which Spark itself judges malformed records."""
    for key in ("mode", "column_name_of_corrupt_record"):
        if getattr(files.format, key, None) is not None:
            return f"`{key}` of the format"
    named = re.search(r"(?i)(?<!\w)_corrupt_record(?!\w)", files.format.schema_ or "")
    return "the column `_corrupt_record` of the schema" if named else None
