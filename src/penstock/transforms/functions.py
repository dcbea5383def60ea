"""Functions of the user's, declared by name, whose exceptions are bad records and not the end of the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.dead_letters.bad_records import OnBadRecord
from penstock.spec import Name, Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Kind = Literal["python", "pandas", "arrow"]
_SHOWN_CHARACTERS = 200


class Function(Spec):
    """A Python function, to be called by its name in SQL steps: on the values of a row, or on columns of many rows."""

    python: Name = Field(
        description="`module:function`, in a module of the project.",
        pattern=r"^\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*$",
        max_length=200,
    )
    kind: Kind = Field(
        "python",
        description="What it gets: `python` the values of one row, `pandas` and `arrow` a Series or an Array of each"
        " column, for many rows at once.",
    )
    returns: str = Field(description="The type of its result as DDL, such as `DOUBLE` or `ARRAY<STRING>`.")
    on_error: OnBadRecord | None = Field(
        None,
        description="A row on which it raises: `dead_letter` puts it aside, `drop` leaves it out, `fail` stops. By"
        " default `dead_letter`; of functions on many rows always `fail`, as nobody can tell which row it was.",
    )

    @model_validator(mode="after")
    def _many_rows_fail_together(self) -> Self:
        if self.kind != "python" and self.on_error not in (None, "fail"):
            raise PydanticCustomError(
                "together",
                "a function of kind `{kind}` gets many rows at once, so no single row can be dropped or put aside:"
                " leave `on_error` out, or use `kind: python`",
                {"kind": self.kind},
            )
        return self

    @property
    def is_guarded(self) -> bool:
        """Are its exceptions values, told row by row?"""
        return self.kind == "python"

    @property
    def policy(self) -> OnBadRecord:
        return self.on_error or ("dead_letter" if self.is_guarded else "fail")


def register(spark: SparkSession, name: str, function: Function, call: Callable[..., Any]) -> None:
    """Makes it known to the session's SQL. On one row it gives a struct: the value, and what was raised instead."""
    from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

    if not function.is_guarded:
        made: Callable[..., Any] = pandas_udf if function.kind == "pandas" else arrow_udf
        spark.udf.register(name, made(call, returnType=function.returns))
        return
    spark.udf.register(name, guarded(name, call), f"value {function.returns}, error STRING")


def guarded(name: str, call: Callable[..., Any]) -> Callable[..., tuple[Any, str | None]]:
    """The function, with its exceptions as values. Closes over plain values alone: workers may lack this package."""
    most = _SHOWN_CHARACTERS

    def guarded_call(*arguments: Any) -> tuple[Any, str | None]:
        try:
            return call(*arguments), None
        except Exception as error:  # noqa: BLE001 - whatever a user's function raises
            given = ", ".join(repr(argument) for argument in arguments)
            return None, f"{name}({given[:most]}) raised {type(error).__name__}: {str(error)[:most]}"

    return guarded_call
