"""A step that takes duplicates out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from penstock.facts.operators import Expression, Operator, OperatorKind
from penstock.facts.streams import marks
from penstock.problems import Fault, did_you_mean
from penstock.spec import Name, Spec
from penstock.transforms.step import Code, OutputMode, StepSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Deduplication(Spec):
    """Which rows, and what makes two of them duplicates."""

    of: Name = Field(description="The source or step whose rows it gets.")
    keys: tuple[Name, ...] = Field(
        (),
        description="Rows that are equal in these columns are duplicates; by default those that are equal in all. With"
        " the column of a watermark among them a key is forgotten once the watermark has passed it.",
    )
    within_watermark: bool = Field(
        False,
        description="A key is forgotten the watermark's delay after its first row, whatever the event times: for events"
        " that are sent again with another time. Needs a watermark.",
    )


class Deduplicate(StepSpec):
    """The first row of each key; later ones are left out, over batches and restarts."""

    key: ClassVar[str] = "deduplicate"
    deduplicate: Deduplication = Field(description="Which rows, and what makes two of them duplicates.")

    example: ClassVar[str] = "{deduplicate: {of: orders, keys: [order_id], within_watermark: true}}"

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.deduplicate.of,)

    def keys_of(self, name: str) -> tuple[str, ...]:
        return (self.key, "of")

    def plan(self, name: str, inputs: Mapping[str, Operator]) -> Operator | None:
        declared = self.deduplicate
        rows = inputs[declared.of]
        event_times = {one.rpartition(".")[2]: one for one in marks(rows).event_time}
        names = [key.lower() for key in declared.keys] or list(event_times)  # all columns: that of the watermark too
        keys = tuple(Expression(event_times.get(key, f"{declared.of}.{key}"), "column") for key in names)
        kind: OperatorKind = "deduplicate_within_watermark" if declared.within_watermark else "deduplicate"
        return Operator(kind, name, (rows,), keys=keys)

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        declared = self.deduplicate
        rows = inputs[declared.of]
        for number, key in enumerate(declared.keys):
            if key.lower() not in {column.lower() for column in rows.columns}:
                raise Fault("DEDUPLICATE001", f"`{declared.of}` has no column `{key}`{did_you_mean(key, rows.columns)}",
                            f"use some of: {', '.join(rows.columns)}", (self.key, "keys", number))  # fmt: skip
        keys = list(declared.keys) or None
        return rows.dropDuplicatesWithinWatermark(keys) if declared.within_watermark else rows.dropDuplicates(keys)
