"""A step with state of its own, the older way: a function over pandas DataFrames, called for each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.facts.operators import Expression, Operator
from penstock.spec import Name
from penstock.transforms.keyed import Keyed, declared_columns, require_columns
from penstock.transforms.step import Code, OutputMode, StepSpec
from penstock.user_code import load_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Timeout = Literal["none", "processing_time", "event_time"]
_TIMEOUTS: dict[Timeout, str] = {
    "none": "NoTimeout",
    "processing_time": "ProcessingTimeTimeout",
    "event_time": "EventTimeTimeout",
}
"""How Spark spells them."""


class Grouping(Keyed):
    """Which rows, grouped how, go through which function."""

    with_: Name = Field(
        alias="with",
        description="`module:function`: it gets a key, DataFrames of pandas and the key's state, and gives DataFrames.",
        pattern=r"^\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*$",
        max_length=200,
    )
    output: str = Field(description="The columns of the rows that it gives, as DDL.")
    state: str = Field(description="The columns of a key's state, as DDL.")
    mode: Literal["append", "update"] | None = Field(
        None, description="What its rows are: new ones, or changed ones. The query's own mode by default."
    )
    timeout: Timeout = Field(
        "none", description="The clock of a key's timeout: `processing_time`, or `event_time`, which needs a watermark."
    )


class PandasState(StepSpec):
    """Rows made by a function with state: PySpark's `applyInPandasWithState`. A new one is better a `process` step."""

    key: ClassVar[str] = "pandas_state"
    pandas_state: Grouping = Field(description="Which rows, grouped how, go through which function.")

    example: ClassVar[str] = """
        pandas_state: {of: payments, key: [card_id], with: fraud:counted, state: 'payments LONG',
                       output: 'card_id STRING, payments LONG'}
    """

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.pandas_state.of,)

    @property
    def code(self) -> str | None:
        return self.pandas_state.with_

    def keys_of(self, name: str) -> tuple[str, ...]:
        return (self.key, "of")

    def plan(self, name: str, inputs: Mapping[str, Operator]) -> Operator | None:
        declared = self.pandas_state
        keys = tuple(Expression(key, "column") for key in declared.key)
        return Operator(
            "pandas_state", name, (inputs[declared.of],), keys=keys, columns=(), mode=declared.mode,
            time=declared.timeout,
        )  # fmt: skip

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        declared = self.pandas_state
        rows = inputs[declared.of]
        require_columns(declared.key, rows, declared.of, self.key, "key")
        return rows.groupBy(*declared.key).applyInPandasWithState(
            code or load_code(declared.with_),
            outputStructType=declared_columns(declared.output, self.key, "output"),
            stateStructType=declared_columns(declared.state, self.key, "state"),
            outputMode=(declared.mode or mode).capitalize(),
            timeoutConf=_TIMEOUTS[declared.timeout],
        )
