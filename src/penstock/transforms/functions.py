"""Functions of the user's, declared by name, whose exceptions are bad records and not the end of the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import Field

from penstock.records import OnBadRecord
from penstock.spec import Name, Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN_CHARACTERS = 200


class Function(Spec):
    """A Python function on the values of one row, to be called by its name in the SELECT list of SQL steps."""

    python: Name = Field(
        description="`module:function`, in a module of the project.",
        pattern=r"^\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*$",
        max_length=200,
    )
    returns: str = Field(description="The type of its result as DDL, such as `DOUBLE` or `ARRAY<STRING>`.")
    on_error: OnBadRecord = Field(
        "dead_letter",
        description="A row on which it raises: `dead_letter` puts it aside, `drop` leaves it out, `fail` stops.",
    )


def register(spark: SparkSession, name: str, function: Function, call: Callable[..., Any]) -> None:
    """Makes it known to the session's SQL. It gives a struct: the value, and what was raised in place of one."""
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
