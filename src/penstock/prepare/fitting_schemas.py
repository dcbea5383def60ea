"""Does a reader's declared schema fit what a query of the project writes? Over types alone, without a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Form = Literal["json", "columnar"]
"""Values as JSON has them, or columns with types of their own, as in Parquet and ORC."""
_INTEGRAL = ("tinyint", "smallint", "int", "bigint")
_FRACTIONAL = ("float", "double", "decimal")
_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_TEXTS = ("string", "char", "varchar")


def misfits(written: StructType, expected: StructType, form: Form, within: str = "") -> Iterator[tuple[str, str]]:
    """Each column that the reader expects and does not get, or gets with another type; and what is wrong with it."""
    known = {_key(field.name, form): field.dataType for field in written.fields}
    for field in expected.fields:
        name = f"{within}{field.name}"
        if _key(field.name, form) not in known:
            yield name, "missing"
        else:
            yield from _of_type(known[_key(field.name, form)], field.dataType, form, name)


def _of_type(written: DataType, expected: DataType, form: Form, name: str) -> Iterator[tuple[str, str]]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(written, StructType) and isinstance(expected, StructType):
        yield from misfits(written, expected, form, f"{name}.")
    elif isinstance(written, ArrayType) and isinstance(expected, ArrayType):
        yield from _of_type(written.elementType, expected.elementType, form, name)
    elif isinstance(written, MapType) and isinstance(expected, MapType):
        yield from _of_type(written.valueType, expected.valueType, form, name)
    elif not (_json_fits if form == "json" else _column_fits)(_word(written), _word(expected)):
        yield name, f"{written.simpleString().upper()}, not {expected.simpleString().upper()}"


def _json_fits(written: str, expected: str) -> bool:
    if written == expected or expected in (*_TEXTS, "variant"):
        return True
    if expected in _INTEGRAL:
        return written in _INTEGRAL
    if expected in _FRACTIONAL:
        return written in (*_INTEGRAL, *_FRACTIONAL)
    if expected in _MOMENTS:
        return written in (*_MOMENTS, *_TEXTS, *_INTEGRAL)
    if expected == "binary":
        return written in _TEXTS
    return {written, expected} == {"struct", "map"} or written == "variant"


def _column_fits(written: str, expected: str) -> bool:
    if written == expected or {written, expected} <= {*_TEXTS, "binary"}:
        return True
    if written in _INTEGRAL and expected in _INTEGRAL:
        return _INTEGRAL.index(written) <= _INTEGRAL.index(expected)
    if written in _INTEGRAL[:3] and expected in ("double", "decimal"):
        return True
    return (written, expected) in {("float", "double"), ("date", "timestamp_ntz"), ("bigint", "decimal")}


def _word(kind: DataType) -> str:
    return kind.simpleString().partition("(")[0].partition("<")[0]


def _key(name: str, form: Form) -> str:
    return name if form == "json" else name.lower()
