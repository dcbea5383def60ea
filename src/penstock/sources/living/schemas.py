"""What is new in a schema, what fits it, and the schema with what is new. Columns are named by paths.

A path is `city`, `address.street` for a field of a struct, `items[].sku` for one of the structs in an array. A name
that holds a dot, a bracket or a backquote stands in backquotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.notation.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

ELEMENT = "[]"
FILE_KEY = "_file"
"""The key of the rescued column under which the path of the file stands."""
_PLAIN = re.compile(r"^[^.`\[\]]+$")
_STEP = re.compile(r"`((?:[^`]|``)*)`|(\[\])|([^.`\[\]]+)")
# By size: each type can be read as those after it. Spark's Parquet reader does the same.
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_AS_DOUBLE = ("tinyint", "smallint", "int", "float")


def step(name: str) -> str:
    """A name as it stands in a path."""
    return name if _PLAIN.match(name) and name != FILE_KEY else quoted(name)


def steps(path: str) -> list[str]:
    """`items[].sku` → [`items`, `[]`, `sku`], names without their backquotes."""
    found = _STEP.finditer(path)
    return [match[1].replace("``", "`") if match[1] is not None else match[2] or match[3] for match in found]


def paths(schema: StructType, above: str = "") -> Iterator[str]:
    """Every column and field, each after the one it is in."""
    from pyspark.sql.types import StructType

    for field in schema.fields:
        path = f"{above}{step(field.name)}"
        yield path
        inner, suffix = _inside(field.dataType)
        if isinstance(inner, StructType):
            yield from paths(inner, f"{path}{suffix}.")


def new_paths(found: StructType, known: StructType) -> list[str]:
    """What `found` has and `known` lacks, the outermost only. Names that differ in case alone are the same."""
    there = {path.lower() for path in paths(known)}
    new: list[str] = []
    for path in paths(found):
        if path.lower() not in there and not any(_is_below(path, other) for other in new):
            new.append(path)
    return new


def widened(schema: StructType, new: Iterable[str], found: StructType) -> StructType:
    """With the columns `new`, in the types that they have in `found`; STRING where that has no type for one.

    A name that differs from a known one in case alone is left out: Spark could not tell the two apart.
    """
    from pyspark.sql.types import StringType

    for path in sorted(new, key=lambda path: len(steps(path))):
        type_ = _looked_up(found, steps(path)) or StringType()
        schema = _inserted(schema, steps(path), without_twins(type_))
    return schema


def without_twins(type_: Any) -> Any:
    """A type in which no struct has two fields that differ in case alone: the first one stays."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    if isinstance(type_, ArrayType):
        return ArrayType(without_twins(type_.elementType), True)
    if not isinstance(type_, StructType):
        return type_
    first = {field.name.lower(): field for field in reversed(type_.fields)}
    return StructType(
        [
            StructField(field.name, without_twins(field.dataType), True)
            for field in type_.fields
            if first[field.name.lower()] is field
        ]
    )


def hinted(schema: StructType, hints: StructType) -> StructType:
    """With the names and types that the user is sure of in place of those found; what was not found comes last.

    A struct keeps the fields that no hint names, so that hints never take back what was added.
    """
    from pyspark.sql.types import StructField, StructType

    by_name = {field.name.lower(): field for field in hints.fields}
    there = {field.name.lower() for field in schema.fields}
    kept = []
    for field in schema.fields:
        hint = by_name.get(field.name.lower())
        kept.append(StructField(hint.name, _agreed(field.dataType, hint.dataType)) if hint else field)
    return StructType(kept + [field for field in hints.fields if field.name.lower() not in there])


def _agreed(type_: Any, hint: Any) -> Any:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(type_, StructType) and isinstance(hint, StructType):
        return hinted(type_, hint)
    if isinstance(type_, ArrayType) and isinstance(hint, ArrayType):
        return ArrayType(_agreed(type_.elementType, hint.elementType), True)
    return hint


def unfit(found: StructType, schema: StructType, above: str = "") -> Iterator[tuple[str, str, str]]:
    """Columns whose type in a file cannot be read as that of the schema: path, file's type, schema's type."""
    from pyspark.sql.types import StructType

    known = {field.name.lower(): field for field in schema.fields}
    for field in found.fields:
        if field.name.lower() not in known:
            continue
        path, ours = f"{above}{step(field.name)}", known[field.name.lower()].dataType
        (theirs_inside, theirs), (ours_inside, depth) = _inside(field.dataType), _inside(ours)
        if theirs == depth and isinstance(theirs_inside, StructType) and isinstance(ours_inside, StructType):
            yield from unfit(theirs_inside, ours_inside, f"{path}{depth}.")
        elif theirs != depth or not _fits(theirs_inside, ours_inside):
            yield path, field.dataType.simpleString(), ours.simpleString()


def merged(schemas: Iterable[StructType]) -> StructType:
    """All columns of some schemas; a column that has several types gets one that can hold them all."""
    from pyspark.sql.types import StructField, StructType

    types: dict[str, Any] = {}
    for schema in schemas:
        for field in schema.fields:
            known = types.get(field.name)
            types[field.name] = field.dataType if known is None else _common(known, field.dataType)
    return StructType([StructField(name, type_) for name, type_ in types.items()])


def from_json(value: Mapping[str, Any] | None) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(dict(value)) if value else StructType([])


def _inside(type_: DataType) -> tuple[DataType, str]:
    """What an array holds, however deep, with a bracket for each level."""
    from pyspark.sql.types import ArrayType

    depth = ""
    while isinstance(type_, ArrayType):
        type_, depth = type_.elementType, depth + ELEMENT
    return type_, depth


def innermost(type_: DataType) -> DataType:
    """What an array holds, however deep; any other type is itself."""
    return _inside(type_)[0]


def _is_below(path: str, other: str) -> bool:
    return path.startswith((f"{other}.", f"{other}{ELEMENT}"))


def _looked_up(type_: Any, way: list[str]) -> Any:
    from pyspark.sql.types import ArrayType, StructType

    for name in way:
        if name == ELEMENT and isinstance(type_, ArrayType):
            type_ = type_.elementType
        elif isinstance(type_, StructType) and name in type_.names:
            type_ = type_[name].dataType
        else:
            return None
    return type_


def _inserted(type_: Any, way: list[str], new: Any) -> Any:
    from pyspark.sql.types import ArrayType, StructField, StructType

    name, *rest = way
    if name == ELEMENT and isinstance(type_, ArrayType):
        return ArrayType(_inserted(type_.elementType, rest, new), True)
    if not isinstance(type_, StructType):
        return type_
    if not rest:
        there = {known.lower() for known in type_.names}
        return type_ if name.lower() in there else StructType([*type_.fields, StructField(name, new, True)])
    return StructType(
        [
            StructField(field.name, _inserted(field.dataType, rest, new), True) if field.name == name else field
            for field in type_.fields
        ]
    )


def _fits(theirs: DataType, ours: DataType) -> bool:
    from pyspark.sql.types import DecimalType

    have, want = theirs.simpleString(), ours.simpleString()
    if have == want:
        return True
    if isinstance(ours, DecimalType):
        if isinstance(theirs, DecimalType):
            return ours.scale >= theirs.scale and ours.precision - ours.scale >= theirs.precision - theirs.scale
        return ours.precision - ours.scale >= _DIGITS.get(have, 99)
    if have in _INTEGERS and want in _INTEGERS:
        return _INTEGERS.index(have) <= _INTEGERS.index(want)
    return want == "double" and have in _AS_DOUBLE


def _common(one: Any, other: Any) -> Any:
    from pyspark.sql.types import DoubleType, LongType, StringType

    if one == other:
        return one
    names = {one.simpleString(), other.simpleString()}
    if names <= set(_INTEGERS):
        return LongType()
    return DoubleType() if names <= {*_INTEGERS, "float", "double"} else StringType()
