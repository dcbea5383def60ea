"""The keys of a part, with their types and defaults in a user's words."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from penstock.dead_letters.bad_records import Expectation
from penstock.formats.format import ReadFormat, WriteFormat
from penstock.notation.durations import Duration
from penstock.notation.paths import is_path
from penstock.query.state_store import State
from penstock.query.triggers import Trigger
from penstock.query.watermark import Watermark
from penstock.spec import Option, Part, Spec, spark_option_names
from penstock.transforms.functions import Function

Row = tuple[str, str, str, str]
"""A key, its type, its default and what it does."""


def keys_of(spec: type[Spec]) -> list[Row]:
    options = spark_option_names(spec)
    rows: list[Row] = []
    for name, field in spec.model_fields.items():
        option = f" Spark option: `{options[name]}`." if name in options else ""
        if not (name == "type" and issubclass(spec, Part)):
            about = f"{field.description or ''}{option}"
            rows.append((field.alias or name, _field_type(field), _default(field), about))
    # Keys that every part of a kind shares come last: what is special about this one is read first.
    shared = ("expect", "watermark", "read", "refresh", "batch_sql", "spark_options")
    return sorted(rows, key=lambda row: (row[0] in shared, row[2] != "required"))


def _field_type(field: FieldInfo) -> str:
    words = type_words(field.annotation, field.metadata)
    limits = [
        f"{word} {getattr(mark, limit)}"
        for mark in field.metadata
        for limit, word in (("gt", "above"), ("ge", "at least"), ("lt", "below"), ("le", "at most"))
        if getattr(mark, limit, None) is not None
    ]
    return ", ".join([words, *limits])


def type_words(annotation: Any, marks: Iterable[Any] = ()) -> str:
    """A field's type in a user's words."""
    if annotation in (Any, Option):
        return "mapping" if annotation is Any else "text, number, `true` or `false`"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_words(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        members = (type_words(one, marks) for one in arguments if one is not types.NoneType)
        return " or ".join(dict.fromkeys(members))
    if origin is dict:
        return "mapping" if arguments[1] is Any else f"mapping of {type_words(arguments[1])}"
    if origin is tuple:
        return f"list of {type_words(arguments[0])}"
    return _word(annotation, arguments, tuple(marks))


def _word(annotation: Any, arguments: Sequence[Any], marks: Sequence[Any]) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if issubclass(annotation, ReadFormat | WriteFormat):
        return "[format](../README.md#formats)"
    if annotation is str and is_path(annotation, marks):
        return "path"
    if issubclass(annotation, Spec) and annotation not in _WORDS:
        return f"mapping of {', '.join(f'`{field.alias or name}`' for name, field in annotation.model_fields.items())}"
    return "duration" if any(mark in get_args(Duration) for mark in marks) else _WORDS[annotation]


_WORDS: dict[Any, str] = {
    bool: "`true` or `false`",
    int: "whole number",
    float: "number",
    str: "text",
    Trigger: "[trigger](pipeline.md#trigger)",
    Expectation: "[expectation](../pipeline.md#expectation)",
    Function: "[function](pipeline.md#function)",
    State: "[state](pipeline.md#state)",
    Watermark: "[watermark](../pipeline.md#watermark)",
}


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value in (None, "", (), PydanticUndefined):
        return "–"
    if isinstance(value, Part):
        return f"`{getattr(value, 'type', '')}`"
    return f"`{value.value if isinstance(value, Enum) else value if isinstance(value, str) else json.dumps(value)}`"
