"""What the readers of all formats share: what a look into files found, and how a batch is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from penstock.dead_letters.bad_records import HIDDEN
from penstock.facts.raised import sealed
from penstock.sources.living.schemas import FILE_KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from penstock.sources.files import Files
    from penstock.sources.living.versions import Version


@dataclass(frozen=True)
class Found:
    """What some files hold."""

    schema: StructType
    new: Mapping[str, str] = field(default_factory=dict)
    """Path of each column that the schema lacks → a file that has it."""
    width: int = 0
    unfit: tuple[tuple[str, str, str, str], ...] = ()
    """Columns that cannot be read in their type: path, the file's type, the schema's type, the file."""


class NewColumns(Exception):
    """A batch holds columns that its schema lacks, and is refused before anything of it is written."""

    def __init__(self, source: Files, version: Version, new: Mapping[str, str]) -> None:
        self.failure_parameters: Mapping[str, Any] = {
            "location": source.schema_location,
            "version": version.version,
            "columns": list(new),
            "file": next(iter(new.values()), ""),
        }
        super().__init__(f"columns that schema version {version.version} lacks: {', '.join(new)}")


def refusal_of_columns(source: Files, version: Version, columns: Column, file: Column) -> Column:
    """True, or an error that names the new columns of a row."""
    from pyspark.sql.functions import concat as joined
    from pyspark.sql.functions import lit, raise_error, size, struct, to_json, when

    told = struct(
        lit(source.schema_location).alias("location"),
        lit(version.version).alias("version"),
        columns.alias("columns"),
        file.alias("file"),
    )
    refused = raise_error(joined(lit(sealed("new-columns")), to_json(told))).cast("boolean")
    return when(size(columns) == 0, lit(True)).otherwise(refused)


def reserved(source: Files, partitions: Sequence[str]) -> list[str]:
    """Names that no new column can have: a field of such a name is rescued."""
    return [*partitions, source.rescued_column, HIDDEN]


def reader(source: Files, spark: SparkSession, format_type: str | None = None) -> DataFrameReader:
    """Reads files by their very names, with the options of the format."""
    from penstock.spec import given_options

    options = given_options(source.format)
    # Spark's own name for it: a file called `a[1].json` is no pattern.
    return spark.read.format(format_type or source.format.type).options(**options).option("__globPaths__", "false")


def careful(spark: SparkSession) -> SparkSession:
    """A session in which `Id` and `id` are two columns, so that no look into files fails on them."""
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    return session


def all_files(source: Files, spark: SparkSession) -> list[str]:
    """The files that are there now, by name."""
    from penstock.spec import given_options

    listed = spark.read.format("text").options(**given_options(source)).load(source.path)
    return sorted(map(unquote, listed.inputFiles()))


def sample(files: Sequence[str], most: int) -> list[str]:
    """At most so many of the files, spread evenly: the newest may differ from the oldest."""
    if len(files) <= most:
        return list(files)
    return [files[index * (len(files) - 1) // max(most - 1, 1)] for index in range(most)]


def folder_columns(source: Files, files: Sequence[str]) -> list[str]:
    """The columns that the folders of these files give, by their names: `in/day=7/a.json` gives `day`.

    Nothing is listed: this is asked for every batch of Parquet files, and a folder may hold a million of them.
    """
    if source.recursive_file_lookup:
        return []
    depth = len(_parts(source.base_path or source.path))
    found = (part.partition("=") for file in files for part in _parts(file)[depth:-1])
    return list(dict.fromkeys(name for name, sign, _ in found if sign))


def _parts(path: str) -> list[str]:
    return [part for part in re.sub(r"^file:/+", "/", path).split("/") if part]


def step_of(name: Column) -> Column:
    """`schemas.step`, as a column."""
    from pyspark.sql.functions import concat, lit, replace, when

    plain = name.rlike(r"^[^.`\[\]]+$") & (name != FILE_KEY)
    return when(plain, name).otherwise(concat(lit("`"), replace(name, lit("`"), lit("``")), lit("`")))
