"""The base of all that a user writes: frozen, typed, unknown keys refused, references let through unread."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from penstock.notation.references import has_reference, without_secrets
from penstock.spec_refusals import keep_given


def _checked_option(value: Any) -> Any:
    # Said once: a union would say it for each of its members.
    if not isinstance(value, bool | int | float | str):
        raise PydanticCustomError("option", "should be a text, a number, `true` or `false`")
    return value


Option = Annotated[bool | int | float | str, BeforeValidator(_checked_option)]
"""A value that Spark takes as an option."""


class _NameMark:
    """Marks a field whose text names something."""


Name = Annotated[str, _NameMark()]
"""A name that must be known without resolving anything."""


class Spec(BaseModel):
    """One thing that a user declares. Its docstring says what it promises; its fields are its whole grammar."""

    # Validators are built on first use: a command pays only for the parts that its pipelines name.
    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, protected_namespaces=(), defer_build=True
    )

    def __init__(self, /, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            keep_given(error, type(self), given)
            raise

    # Otherwise pydantic would call it for nested parts too.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What was given, secrets masked."""
        for name in type(self).model_fields:
            if name in self.model_fields_set and name != "type":
                yield name, without_secrets(name, getattr(self, name))

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep_references(cls, value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        # A reference may stand for a value of any type, so it is judged only once the engine has resolved it.
        if not has_reference(value) or (info.context and info.context.get("resolved")):
            return check(value)
        if info.field_name and _shapes_the_pipeline(cls, info.field_name):
            raise PydanticCustomError("reference", "decides the shape of the pipeline, so it cannot be a ${reference}")
        return value

    def given(self) -> dict[str, Any]:
        """What the user wrote, without defaults, as plain data."""
        # A reference may stand where a number is expected: that is no reason to warn.
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True, warnings="none")


class Part(Spec):
    """A format, source, step or sink: chosen by `type`, one file each."""

    example: ClassVar[str]
    """YAML that declares one, shown in the reference and loaded by the tests."""

    def model_post_init(self, context: Any, /) -> None:
        # The type belongs to what was given, also in Python, where the class says it.
        if "type" in type(self).model_fields:
            self.__pydantic_fields_set__.add("type")


def spark_option(default: Any, description: str, *, name: str | None = None, **constraints: Any) -> Any:
    """A field that is handed to Spark as an option, under `name` or its own name in camel case."""
    return Field(default, description=description, json_schema_extra={"spark_option": name or ""}, **constraints)


def spark_option_names(spec: type[Spec]) -> dict[str, str]:
    """Field name → the name of the Spark option it sets."""
    named: dict[str, str] = {}
    for name, field in spec.model_fields.items():
        if isinstance(field.json_schema_extra, dict) and "spark_option" in field.json_schema_extra:
            named[name] = str(field.json_schema_extra["spark_option"]) or camel(name)
    return named


def given_options(spec: Spec) -> dict[str, str]:
    """The options that the user set, as Spark spells them; what was left out stays Spark's own default."""
    typed = {
        option: to_option(getattr(spec, name))
        for name, option in spark_option_names(type(spec)).items()
        if name in spec.model_fields_set and getattr(spec, name) is not None
    }
    through = spec.spark_options if isinstance(spec, WithSparkOptions) else {}
    return typed | {name: to_option(value) for name, value in through.items()}


class WithSparkOptions(Spec):
    """The one way through for options that have no key of their own."""

    spark_options: dict[str, Option] = Field(
        default_factory=dict,
        description="Further options, passed to Spark as they are. One that has a key of its own here is refused.",
    )

    @model_validator(mode="after")
    def _no_option_twice(self) -> WithSparkOptions:
        typed = {option.lower(): name for name, option in spark_option_names(type(self)).items()}
        for option in self.spark_options:
            if option.lower() in typed:
                raise PydanticCustomError(
                    "typed_option",
                    "`{option}` has a key of its own here: write `{key}` instead of naming it in `spark_options`",
                    {"option": option, "key": typed[option.lower()]},
                )
        return self


def camel(name: str) -> str:
    """`max_files_per_trigger` → `maxFilesPerTrigger`, the way Spark spells its options."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def to_option(value: Any) -> str:
    """A value in the spelling that Spark's options take."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _shapes_the_pipeline(spec: type[Spec], field_name: str) -> bool:
    """All but plain values must be known without resolving anything, or nothing could be judged before a run."""
    field = spec.model_fields[field_name]
    return not _is_plain(Annotated[field.annotation, *field.metadata, None])


def _is_plain(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return _is_plain(inner) and not any(isinstance(mark, _NameMark) for mark in marks)
    if get_origin(annotation) in (Union, types.UnionType):
        return all(_is_plain(member) for member in get_args(annotation))
    return annotation in (bool, int, float, str, types.NoneType)
