"""Parquet files under a living schema: Spark reads them by name, and their footers tell what else is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.sources.file_records import column
from penstock.sources.living import schemas
from penstock.sources.living.found import Found, folder_columns, reader
from penstock.spark_internals import JavaError, thrown_by
from penstock.spec import given_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.sources.files import Files
    from penstock.sources.living.versions import Version


def rows(source: Files, spark: SparkSession, version: Version) -> DataFrame:
    """The stream of a folder's rows in the columns of a version. What is new in a file must be found beforehand."""
    from pyspark.sql.functions import col

    schema, wide = schemas.from_json(version.schema), _read_as(version)
    options = source.options() | given_options(source.format)
    found = spark.readStream.format("parquet").options(**options).schema(wide).load(source.path)
    folders = found.columns[len(wide.fields) :]
    shown = [_narrowed(column(name), wide[name].dataType, schema[name].dataType).alias(name) for name in schema.names]
    shown += [column(name) for name in folders]
    if source.rescues:
        rescued = _rescued(schemas.new_paths(wide, schema), col("_metadata.file_path"))
        shown.append(rescued.alias(source.rescued_column))
    return found.select(*shown)


def look(source: Files, spark: SparkSession, files: list[str], version: Version) -> Found:
    """What the footers of these files tell beyond a version."""
    from pyspark.sql.types import StructType

    known = _read_as(version)
    folders = {name.lower() for name in folder_columns(source, files)}
    new: dict[str, str] = {}
    unfit: list[tuple[str, str, str, str]] = []
    total = StructType([])
    for there, found in _footers(source, spark, files):
        own = StructType([field for field in found.fields if field.name.lower() not in folders])
        for path in schemas.new_paths(own, known):
            new.setdefault(path, there[0])
        unfit += [(*one, there[0]) for one in schemas.unfit(own, known)]
        total = schemas.widened(total, schemas.new_paths(own, total), own)
    return Found(total, new, unfit=tuple(unfit))


def _read_as(version: Version) -> StructType:
    return schemas.from_json(version.read_as or version.schema)


def _narrowed(value: Column, wide: Any, narrow: Any) -> Column:
    """A value without the fields that the narrower type lacks."""
    from pyspark.sql.functions import struct, transform, when
    from pyspark.sql.types import ArrayType, StructType

    if wide == narrow:
        return value
    if isinstance(wide, ArrayType):
        return transform(value, lambda one: _narrowed(one, wide.elementType, narrow.elementType))
    if isinstance(wide, StructType):
        names = narrow.names
        fields = [_narrowed(value[name], wide[name].dataType, narrow[name].dataType).alias(name) for name in names]
        return when(value.isNotNull(), struct(*fields))
    return value


def _rescued(paths: list[str], file: Column) -> Column:
    """What stands under some paths, as JSON; NULL if it is nothing."""
    from pyspark.sql.functions import cardinality, create_map, lit, map_concat, map_filter, to_json, when

    if not paths:
        return lit(None).cast("string")
    entries = []
    for path in paths:
        first, *rest = schemas.steps(path)
        entries += [lit(path), _as_variant(_below(column(first), rest))]
    values = map_filter(create_map(*entries), lambda _, value: value.isNotNull())
    everything = map_concat(values, create_map(lit(schemas.FILE_KEY), file.cast("variant")))
    return when(cardinality(values) > 0, to_json(everything))


def _below(value: Column, way: list[str]) -> Column:
    """What stands further in; of an array, what its elements have there, or NULL if none has anything."""
    from pyspark.sql.functions import exists, transform, when

    if not way:
        return value
    name, *rest = way
    if name == schemas.ELEMENT:
        inside = transform(value, lambda one: _below(one, rest))
        return when(exists(inside, lambda one: one.isNotNull()), inside)
    return _below(value[name], rest)


def _as_variant(value: Column) -> Column:
    # A struct has no cast to VARIANT, only this function.
    from pyspark.sql.functions import struct, to_variant_object, try_variant_get, when

    held = to_variant_object(struct(value.alias("v")))
    return when(value.isNotNull(), try_variant_get(held, "$.v", "variant"))


def infer(source: Files, spark: SparkSession, files: list[str]) -> Found:
    """The columns of all files, each in the type that it has first."""
    from pyspark.sql.types import StructType

    total = StructType([])
    for _, found in _footers(source, spark, files):
        total = schemas.widened(total, schemas.new_paths(found, total), found)
    return Found(total)


def _footers(source: Files, spark: SparkSession, files: list[str]) -> Iterator[tuple[list[str], StructType]]:
    """Groups of files with their schema. Spark merges footers in parallel; where types differ, in smaller groups."""
    from pyspark.errors import PySparkException

    if not files:
        return
    try:
        found = reader(source, spark).option("mergeSchema", "true").load(files).schema
    except (PySparkException, JavaError) as error:
        if len(files) == 1 or not any(one.condition == "CANNOT_MERGE_SCHEMAS" for one in thrown_by(error)):
            raise
        half = len(files) // 2
        yield from _footers(source, spark, files[:half])
        yield from _footers(source, spark, files[half:])
        return
    yield files, found
