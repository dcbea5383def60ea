"""What every kind of step has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from penstock.records import Expectation
from penstock.spec import Part
from penstock.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StepSpec(Part):
    """Rows made from the rows of sources and other steps. Its kind is the key that it is written with."""

    key: ClassVar[str]
    """The YAML key that says what kind of step it is."""

    watermark: Watermark | None = Field(None, description="Set on the rows of this step, if its sources have none.")

    expect: dict[str, Expectation] = Field(
        default_factory=dict,
        description="Conditions that rows should meet, by name; for steps that keep no state.",
    )

    def apply(self, spark: SparkSession, inputs: Mapping[str, DataFrame]) -> DataFrame:
        """The rows. Inputs are also there as temporary views of `spark`, under their names."""
        raise NotImplementedError
