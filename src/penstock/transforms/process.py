"""A step with state of its own: a stateful processor, called for each key."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from penstock.facts import Expression, Operator
from penstock.problems import Fault, did_you_mean
from penstock.processors import READY_MADE
from penstock.processors.ready_made import OPTIONS, ReadyMade, TimeMode
from penstock.spec import Name, Spec
from penstock.transforms.step import Code, OutputMode, StepSpec
from penstock.user_code import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType

TIME_MODES: dict[TimeMode, str] = {"none": "None", "processing_time": "ProcessingTime", "event_time": "EventTime"}
"""How Spark spells them."""


class Processing(Spec):
    """Which rows, grouped how, go through which processor."""

    of: Name = Field(description="The source or step whose rows it gets.")
    key: tuple[Name, ...] = Field(
        description="The columns that the rows are grouped by. Each key has state of its own.", min_length=1
    )
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

    def keys_of(self, name: str) -> tuple[str, ...]:
        return (self.key, "initial" if name == self.process.initial else "of")

    def plan(self, name: str, inputs: Mapping[str, Operator]) -> Operator | None:
        declared = self.process
        # A name that nobody else uses: what a processor gives are columns of its own.
        column = Expression(f"{name}.{declared.event_time_column}", "column")
        keys = tuple(Expression(key, "column") for key in declared.key)
        made = Operator("process", name, (inputs[declared.of],), keys=keys, columns=(), time=declared.time)
        return Operator("watermark", name, (made,), keys=(column,)) if declared.event_time_column else made

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        declared = self.process
        rows = inputs[declared.of]
        require_columns(declared.key, rows, declared.of, ("process", "key"))
        ready = self.ready_made()
        processor = ready.processor(rows.schema, declared.key) if ready else self.processor(code)
        grouped = rows.groupBy(*declared.key)
        transform = grouped.transformWithState if declared.rows == "row" else grouped.transformWithStateInPandas
        initial = None
        if declared.initial is not None:
            before = inputs[declared.initial]
            require_columns(declared.key, before, declared.initial, ("process", "initial"))
            initial = before.groupBy(*declared.key)
        result: DataFrame = transform(
            statefulProcessor=processor,
            outputStructType=ready.output(rows.schema, declared.key)
            if ready
            else parsed(spark, declared.output or "", ("process", "output")),
            outputMode=mode.capitalize(),
            timeMode=TIME_MODES[declared.time_mode],
            initialState=initial,
            eventTimeColumnName=declared.event_time_column or "",
        )
        return result

    def processor(self, code: Code | None = None) -> StatefulProcessor:
        """A new one, with its options. Raises Fault."""
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor

        declared = self.process
        made = _made(code or _loaded(declared.with_), declared.with_, dict(declared.options))
        if not isinstance(made, StatefulProcessor):
            raise not_a_processor(declared.with_, f"it makes a {type(made).__name__}")
        return made

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


def parsed(spark: SparkSession, ddl: str, keys: tuple[str, ...]) -> StructType:
    """Columns from DDL. Raises Fault."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(ddl)
    except PySparkException as error:
        said = (error.getMessage() or str(error)).strip().splitlines()[0].rstrip(".")
        raise Fault("PROCESS004", f"`{keys[-1]}` is not DDL: {said}", DDL_FIX, keys) from None


DDL_FIX = "write columns with their types: `card_id STRING, score DOUBLE`"


def require_columns(columns: tuple[str, ...], rows: DataFrame, of: str, keys: tuple[str, ...]) -> None:
    """Raises Fault for a column that the rows do not have."""
    known = {column.lower() for column in rows.columns}
    for number, column in enumerate(columns):
        if column.lower() not in known:
            message = f"`{of}` has no column `{column}`{did_you_mean(column, rows.columns)}"
            place = (*keys, number) if keys[-1] == "key" else keys
            raise Fault("PROCESS003", message, f"use one of: {', '.join(rows.columns)}", place)


def not_a_processor(name: str, why: str) -> Fault:
    fix = "name a class that is made from `pyspark.sql.streaming.StatefulProcessor`"
    return Fault("PROCESS001", f"`{name}` is not a stateful processor: {why}", fix, ("process", "with"))


def _loaded(name: str) -> Code:
    module, _, attribute = name.partition(":")
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise not_a_processor(name, f"there is no module `{module}`") from None
    try:
        found: Code = load(name)
    except AttributeError:
        raise not_a_processor(name, f"`{module}` has no `{attribute}`") from None
    return found


def _made(code: Code, name: str, options: dict[str, Any]) -> Any:
    import inspect

    if not isinstance(code, type):
        raise not_a_processor(name, f"it is a {type(code).__name__}")
    if inspect.isabstract(code):
        missing = ", ".join(f"`{method}`" for method in sorted(code.__abstractmethods__))
        raise not_a_processor(name, f"it does not define {missing}")
    try:
        inspect.signature(code).bind(**options)
    except TypeError as error:
        raise Fault("PROCESS002", f"the options do not fit `{name}`: {error}",
                    f"its constructor takes: {_parameters(code)}", ("process", "options")) from None  # fmt: skip
    return code(**options)


def _parameters(code: type) -> str:
    import inspect

    return ", ".join(map(str, inspect.signature(code).parameters.values())) or "nothing"
