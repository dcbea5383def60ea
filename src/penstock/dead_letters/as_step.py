"""The rows that a source or step puts aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from penstock.spec import Name
from penstock.transforms.step import Code, OutputMode, StepSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeadLetters(StepSpec):
    """The dead letters of one source or step. Nobody declares it: it is there where something asks for dead letters.

    They leave through a query of their own, so that the data path only filters, whatever it does afterwards.
    """

    key: ClassVar[str] = "dead_letters"
    dead_letters: Name

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        return inputs[self.dead_letters]


def query_name(node: str) -> str:
    """The name of the query through which the dead letters of a node leave."""
    return f"{node}_dead_letters"
