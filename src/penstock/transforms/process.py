"""A step with state of its own: a stateful processor, called for each key."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from penstock.facts.operators import Expression, Operator
from penstock.problems import Fault
from penstock.processors import READY_MADE
from penstock.processors.ready_made import OPTIONS, ReadyMade, TimeMode
from penstock.spec import Name
from penstock.transforms.keyed import Keyed, declared_columns, require_columns
from penstock.transforms.processor_text import not_a_processor
from penstock.transforms.step import Code, OutputMode, StepSpec
from penstock.user_code import load_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType

TIME_MODES: dict[TimeMode, str] = {"none": "None", "processing_time": "ProcessingTime", "event_time": "EventTime"}
"""How Spark spells them."""
_OUTPUT = ("process", "output")


class Processing(Keyed):
    """Which rows, grouped how, go through which processor."""

    with_: Name = Field(
        alias="with",
        description="`module:Class` of your own StatefulProcessor, or the word for a ready-made one.",
        pattern=r"^(\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*|[a-z]\w*)$",
        max_length=200,
    )
    options: dict[str, Any] = Field(default_factory=dict, description="What its constructor gets, by name.")
    time: TimeMode = Field(
        "none",
        description="The clock of its timers: `processing_time`, or `event_time`, which needs a watermark."
        " State that expires by TTL needs `processing_time`.",
    )
    output: str | None = Field(
        None, description="The columns of the rows that it gives, as DDL. A ready-made one knows its own."
    )
    event_time_column: Name | None = Field(
        None, description="The column of `output` that carries the watermark on, for a later step that needs it."
    )
    initial: Name | None = Field(
        None, description="A static source or step with the same key: the state that a new checkpoint begins with."
    )
    rows: Literal["row", "pandas"] = Field(
        "row", description="What the processor gets and gives: `row` for Rows, `pandas` for DataFrames of pandas."
    )

    @property
    def is_ready_made(self) -> bool:
        return ":" not in self.with_

    @property
    def options_spec(self) -> type[ReadyMade] | None:
        """The grammar of its options, if it is a ready-made one that there is."""
        return READY_MADE.get(self.with_) if self.is_ready_made else None

    @property
    def time_mode(self) -> TimeMode:
        """The clock of its timers: a ready-made one knows its own."""
        return self.options_spec.model_validate(self.options).time_mode if self.options_spec else self.time


class Process(StepSpec):
    """Rows made by a stateful processor: PySpark's own `StatefulProcessor`, with state and timers for each key."""

    key: ClassVar[str] = "process"
    process: Processing = Field(description="Which rows, grouped how, go through which processor.")

    example: ClassVar[str] = """
        process: {of: payments, key: [card_id], with: fraud:Velocity, time: event_time,
                  output: 'card_id STRING, score DOUBLE'}
    """

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name in (self.process.of, self.process.initial) if name)

    @property
    def code(self) -> str | None:
        return None if self.process.is_ready_made else self.process.with_

    def keys_of(self, name: str) -> tuple[str, ...]:
        return (self.key, "initial" if name == self.process.initial else "of")

    def plan(self, name: str, inputs: Mapping[str, Operator]) -> Operator | None:
        declared = self.process
        # A name that nobody else uses: what a processor gives are columns of its own.
        column = Expression(f"{name}.{declared.event_time_column}", "column")
        keys = tuple(Expression(key, "column") for key in declared.key)
        made = Operator("process", name, (inputs[declared.of],), keys=keys, columns=(), time=declared.time_mode)
        return Operator("watermark", name, (made,), keys=(column,)) if declared.event_time_column else made

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        declared = self.process
        rows = inputs[declared.of]
        require_columns(declared.key, rows, declared.of, "process", "key")
        grouped = rows.groupBy(*declared.key)
        transform = grouped.transformWithState if declared.rows == "row" else grouped.transformWithStateInPandas
        initial = None
        if declared.initial is not None:
            before = inputs[declared.initial]
            require_columns(declared.key, before, declared.initial, "process", "initial")
            initial = before.groupBy(*declared.key)
        result: DataFrame = transform(
            statefulProcessor=self.processor(rows.schema, code),
            outputStructType=self.output(rows.schema),
            outputMode=mode.capitalize(),
            timeMode=TIME_MODES[declared.time_mode],
            initialState=initial,
            eventTimeColumnName=declared.event_time_column or "",
        )
        return result

    def processor(self, rows: StructType, code: Code | None = None) -> StatefulProcessor:
        """A new one, with its options, for rows with these columns. Raises Fault."""
        declared = self.process
        if ready := self.ready_made():
            return ready.processor(rows, declared.key)
        return _made(code or _loaded(declared.with_), declared.with_, dict(declared.options))

    def output(self, rows: StructType) -> StructType:
        """The columns that it gives, for rows with these columns. Raises Fault."""
        ready = self.ready_made()
        return ready.output(rows, self.process.key) if ready else declared_columns(self.process.output or "", *_OUTPUT)

    def ready_made(self) -> ReadyMade | None:
        """The options of the ready-made processor, if it names one. They are resolved. Raises Fault."""
        declared = self.process
        if declared.options_spec is None:
            return None
        try:
            return declared.options_spec.model_validate(declared.options, context={"resolved": True})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            keys = (*OPTIONS, *first["loc"])
            raise Fault("SPEC009", f"`{keys[-1]}` has a wrong value: {first['msg']}",
                        "give a value of the right type", keys) from None  # fmt: skip


def _loaded(name: str) -> Code:
    module, _, attribute = name.partition(":")
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise not_a_processor(name, f"there is no module `{module}`") from None
    try:
        found: Code = load_code(name)
    except AttributeError:
        raise not_a_processor(name, f"`{module}` has no `{attribute}`") from None
    return found


def _made(code: Code, name: str, options: dict[str, Any]) -> StatefulProcessor:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    if not isinstance(code, type):
        raise not_a_processor(name, f"it is a {type(code).__name__}")
    if not issubclass(code, StatefulProcessor):
        raise not_a_processor(name, "it is made from another class")
    if missing := sorted(getattr(code, "__abstractmethods__", ())):
        raise not_a_processor(name, f"it does not define {' and '.join(f'`{method}`' for method in missing)}")
    taken = inspect.signature(code)
    try:
        taken.bind(**options)
    except TypeError as error:
        fix = f"its constructor takes: {', '.join(taken.parameters) or 'nothing'}"
        raise Fault("PROCESS002", f"the options do not fit `{name}`: {error}", fix, ("process", "options")) from None
    return code(**options)
