"""What every kind of step has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from penstock.dead_letters.bad_records import Expectation
from penstock.facts.operators import Operator
from penstock.query.tags import TAGS, Tags
from penstock.query.watermark import Watermark
from penstock.spec import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Code = Callable[..., Any]
OutputMode = Literal["append", "complete", "update"]


class StepSpec(Part):
    """Rows made from the rows of sources and other steps. Its kind is the key that it is written with."""

    key: ClassVar[str]
    """The YAML key that says what kind of step it is."""

    watermark: Watermark | None = Field(None, description="Set on the rows of this step, if its sources have none.")

    expect: dict[str, Expectation] = Field(
        default_factory=dict,
        description="Conditions that rows should meet, by name; for steps that keep no state.",
    )
    tags: Tags = Field((), description=TAGS)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The sources and steps that its keys name; SQL and functions name theirs in another way."""
        return ()

    @property
    def code(self) -> str | None:
        """`module:name` of the user's code that makes its rows, if there is some."""
        return None

    def keys_of(self, name: str) -> tuple[str, ...]:
        """Where in it an input is named."""
        return (self.key,)

    def plan(self, name: str, inputs: Mapping[str, Operator]) -> Operator | None:
        """Its operators over those of its inputs, as far as the text tells; None where only Spark can."""
        return None

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        """The rows, in a query of that output mode. Inputs are also temporary views of `spark`, under their names.

        `code` is the function or class that the step names, where Python gave it itself.
        """
        raise NotImplementedError
