"""JSON documents under a living schema: typed columns, and what does not fit them.

Each document is parsed twice: by the schema, in Spark's own way with all options of the format, and as a VARIANT, which
tells what else is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.sources.file_records import CORRUPT, PERMISSIVE, column, hidden
from penstock.sources.living import schemas
from penstock.sources.living.found import Found, careful, folder_columns, refusal_of_columns, reserved, step_of
from penstock.spark_internals import read_json
from penstock.spec import given_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.sources.files import Files
    from penstock.sources.living.versions import Version

_ROW, _ALL, _UNKNOWN, _MISFIT = "_penstock_row", "_penstock_all", "_penstock_unknown", "_penstock_misfit"
_TEXT, _FILE, _WHOLE = "_penstock_text", "_penstock_file", "_penstock_whole"
_MAP, _LIST = "MAP<STRING, VARIANT>", "ARRAY<VARIANT>"
_RECORD_KEY = "_record"
"""Under it the whole record is rescued, should nothing else tell what did not fit."""


def rows(source: Files, spark: SparkSession, version: Version) -> DataFrame:
    """The stream of a folder's documents in the columns of a version."""
    schema = schemas.from_json(version.schema)
    documents = _documents(source, spark.readStream, source.path, source.options())
    partitions = documents.columns[2:]
    judged = _judged(documents, source, schema, partitions)
    return _shaped(judged, source, version, schema, partitions)


def look(source: Files, spark: SparkSession, files: list[str], version: Version) -> Found:
    """What these files hold beyond a version."""
    from pyspark.sql.functions import col, explode, map_keys
    from pyspark.sql.functions import min as least

    schema = schemas.from_json(version.schema)
    documents = _documents(source, spark.read, files, {"__globPaths__": "false"})
    names = folder_columns(source, files)
    judged = _judged(documents, source, schema, names)
    adds = source.on_new_columns == "add"
    new = addable(col(_UNKNOWN), schema, reserved(source, names)) if adds else map_keys(col(_UNKNOWN))
    keys = judged.select(explode(new).alias("path"), col(_FILE).alias("file"))
    unknown = {row.path: row.file for row in keys.groupBy("path").agg(least("file").alias("file")).collect()}
    return Found(infer(source, spark, files).schema, unknown)


def infer(source: Files, spark: SparkSession, files: list[str]) -> Found:
    """What Spark infers from the documents that are sound: one that names a field twice would make it fail."""
    session = careful(spark)
    documents = _parsed(_documents(source, session.read, files, {"__globPaths__": "false"}), source)
    sound = documents.where(f"{_ALL} IS NOT NULL").select(_TEXT)
    return Found(read_json(session.read.options(**given_options(source.format)), sound).schema)


def addable(unknown: Column, schema: StructType, names: list[str]) -> Column:
    """The paths among the unknown that could become columns: not those that differ from a known one in case alone."""
    from pyspark.sql.functions import array, array_contains, filter, lit, lower, map_keys  # noqa: A004

    known = [lit(path.lower()) for path in (*schemas.paths(schema), *map(schemas.step, names))]
    return filter(map_keys(unknown), lambda path: ~array_contains(array(*known), lower(path)))


def _documents(source: Files, reading: Any, where: Any, options: dict[str, str]) -> DataFrame:
    """One document a row: its text (NULL if it is blank), its file, then the columns that folders give."""
    from pyspark.sql.functions import array, coalesce, col, explode, to_json, try_variant_get

    file = col("_metadata.file_path").alias(_FILE)
    parsing = given_options(source.format)
    if parsing.get("multiLine") != "true" and "encoding" not in parsing:
        separator = {"lineSep": parsing["lineSep"]} if "lineSep" in parsing else {}
        lines = reading.format("text").options(**options | separator).load(where)
        shown: DataFrame = lines.select(col("value").alias(_TEXT), file, *map(column, lines.columns[1:]))
        return shown.where(col(_TEXT).rlike(r"\S"))
    # Only Spark's JSON reader knows documents of several lines, and other encodings.
    reading = reading.format("json").options(**options | parsing | PERMISSIVE | {"singleVariantColumn": _WHOLE})
    parsed: DataFrame = reading.schema(f"{_WHOLE} VARIANT, {CORRUPT} STRING").load(where)
    folders = [name for name in parsed.columns if name not in (_WHOLE, CORRUPT)]
    each = explode(coalesce(try_variant_get(col(_WHOLE), "$", _LIST), array(col(_WHOLE)))).alias(_WHOLE)
    parsed = parsed.select(each, CORRUPT, file, *map(column, folders))
    text = coalesce(to_json(col(_WHOLE)), col(CORRUPT)).alias(_TEXT)
    return parsed.select(text, _FILE, *map(column, folders))


def _parsed(documents: DataFrame, source: Files) -> DataFrame:
    """Documents with what they hold, as a VARIANT and as the map of their fields: NULL for what is no object."""
    from pyspark.sql.functions import col, from_json, try_variant_get

    options = given_options(source.format) | {"singleVariantColumn": _WHOLE}
    whole = from_json(col(_TEXT), f"{_WHOLE} VARIANT", options)[_WHOLE]
    return documents.withColumn(_WHOLE, whole).withColumn(_ALL, try_variant_get(col(_WHOLE), "$", _MAP))


def _judged(documents: DataFrame, source: Files, schema: StructType, names: list[str]) -> DataFrame:
    """Documents with their typed row, what is unknown in them and what does not fit."""
    from pyspark.sql.functions import col, from_json, lit, when
    from pyspark.sql.types import StringType, StructField, StructType

    typed = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    row = from_json(col(_TEXT), typed, given_options(source.format) | PERMISSIVE)
    judged = _parsed(documents, source).withColumn(_ROW, row)
    misfit = _misfit(col(_ALL), col(_ROW), schema, "")
    misfit = when(_size(misfit) > 0, misfit).otherwise(_unsure(col(_ALL), col(_WHOLE), schema))
    misfit = when(col(_ALL).isNotNull() & col(_ROW)[CORRUPT].isNotNull(), misfit).otherwise(_no_fields())
    return judged.withColumn(_UNKNOWN, _unknown(col(_ALL), schema, lit(""), names)).withColumn(_MISFIT, misfit)


def _shaped(judged: DataFrame, source: Files, version: Version, schema: StructType, partitions: list[str]) -> DataFrame:
    from pyspark.sql.functions import array_join, col, concat, lit, map_concat, map_keys, to_json, when

    unknown, misfit = col(_UNKNOWN), col(_MISFIT)
    if source.on_new_columns == "add":
        judged = judged.where(
            refusal_of_columns(source, version, addable(unknown, schema, reserved(source, partitions)), col(_FILE))
        )
    if source.on_new_columns == "fail":
        judged = judged.where(refusal_of_columns(source, version, map_keys(unknown), col(_FILE)))
    own = [name for name in schema.names if name.lower() not in {name.lower() for name in partitions}]
    typed = [col(_ROW)[name].alias(name) for name in own] + [column(name) for name in partitions]
    reason = when(col(_ALL).isNull(), lit("is not a JSON object"))
    if source.rescues:
        everything = map_concat(unknown, misfit, _map_of({schemas.FILE_KEY: col(_FILE).cast("variant")}))
        kept = when(_size(unknown) + _size(misfit) > 0, to_json(everything))
        typed.append(kept.alias(source.rescued_column))
    else:
        fields = array_join(map_keys(misfit), ", ")
        reason = reason.when(_size(misfit) > 0, concat(lit("does not fit the schema: "), fields))
    return judged.select(*typed, hidden(col(_TEXT), reason, col(_FILE)))


def _unknown(fields: Column, struct: StructType, above: Column, names: list[str]) -> Column:
    """Path → value of the fields that a struct does not name, also inside of the structs and arrays that it names."""
    from pyspark.sql.functions import coalesce, concat, lit, map_concat, map_filter, transform_keys

    known = [*struct.names, *names]
    own = map_filter(fields, lambda name, _: ~name.isin(known)) if known else fields
    found = [transform_keys(own, lambda name, _: concat(above, step_of(name)))]
    for field in struct.fields:
        path = concat(above, lit(schemas.step(field.name)))
        found += _unknown_inside(fields[field.name], field.dataType, path)
    return coalesce(map_concat(*found), _no_fields()) if len(found) > 1 else coalesce(found[0], _no_fields())


def _unknown_inside(value: Column, type_: Any, path: Column) -> list[Column]:
    from pyspark.sql.functions import (
        array,
        array_distinct,
        coalesce,
        concat,
        flatten,
        lit,
        map_from_arrays,
        map_keys,
        transform,
        try_variant_get,
    )
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(type_, StructType):
        return [_unknown(try_variant_get(value, "$", _MAP), type_, concat(path, lit(".")), [])]
    if not isinstance(type_, ArrayType) or not isinstance(schemas.innermost(type_), StructType):
        return []
    elements = coalesce(try_variant_get(value, "$", _LIST), array().cast(_LIST))

    def of_element(element: Column) -> Column:
        (inside,) = _unknown_inside(element, type_.elementType, lit(""))
        return inside

    # A value is the list of what the elements have under one path.
    inside = array_distinct(flatten(transform(elements, lambda one: map_keys(of_element(one)))))
    values = transform(inside, lambda key: transform(elements, lambda one: of_element(one)[key]).cast("variant"))
    return [map_from_arrays(transform(inside, lambda key: concat(path, lit(schemas.ELEMENT), key)), values)]


def _misfit(fields: Column, row: Column, struct: StructType, above: str) -> Column:
    """Path → value of the fields that are there, but of which the typed row has nothing."""
    from pyspark.sql.functions import coalesce, is_variant_null, map_concat, map_filter, try_variant_get, when
    from pyspark.sql.types import StructType

    if not struct.fields:
        return _no_fields()
    own: dict[str, Column] = {}
    found: list[Column] = []
    for field in struct.fields:
        path, value, typed = f"{above}{schemas.step(field.name)}", fields[field.name], row[field.name]
        own[path] = when(typed.isNull() & value.isNotNull() & ~is_variant_null(value), value)
        if isinstance(field.dataType, StructType):
            inside = _misfit(try_variant_get(value, "$", _MAP), typed, field.dataType, f"{path}.")
            found.append(when(typed.isNotNull(), inside).otherwise(_no_fields()))
    mine = map_filter(_map_of(own), lambda _, value: value.isNotNull())
    return coalesce(map_concat(mine, *found), _no_fields())


def _unsure(fields: Column, whole: Column, struct: StructType) -> Column:
    """Where something does not fit and no single field tells: the arrays and maps, or else the whole record."""
    from pyspark.sql.functions import map_filter, when
    from pyspark.sql.types import ArrayType, MapType

    record = _map_of({_RECORD_KEY: whole})
    held = {
        schemas.step(field.name): fields[field.name]
        for field in struct.fields
        if isinstance(field.dataType, ArrayType | MapType)
    }
    if not held:
        return record
    those = map_filter(_map_of(held), lambda _, value: value.isNotNull())
    return when(_size(those) > 0, those).otherwise(record)


def _map_of(entries: dict[str, Column]) -> Column:
    from pyspark.sql.functions import create_map, lit

    return create_map(*(one for key, value in entries.items() for one in (lit(key), value)))


def _no_fields() -> Column:
    from pyspark.sql.functions import create_map

    return create_map().cast(_MAP)


def _size(fields: Column) -> Column:
    from pyspark.sql.functions import cardinality

    return cardinality(fields)
