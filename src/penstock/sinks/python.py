"""Code of the user's, for each batch or for each row."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.facts.worker_traceback import with_workers
from penstock.notation.paths import shown
from penstock.problems import Fault, did_you_mean
from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.spark_internals import thrown_by
from penstock.spec import Name
from penstock.user_code import is_users, line_of, load_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def _named(value: Any) -> Any:
    """In Python the function or class itself may be given."""
    return f"{value.__module__}:{value.__qualname__}" if inspect.isfunction(value) or inspect.isclass(value) else value


CodeName = Annotated[Name, BeforeValidator(_named)]


class Python(SinkSpec):
    """Your own code. At-least-once: it must stand that a batch is run again after a crash.

    - `each_batch` names a function that gets the rows of a batch, a DataFrame, and the batch: its `number`,
      `query_id`, `sink` and `pipeline`. A batch that is run again has the same number, query id and rows.
      `batch.once("mail", action)` runs `action()` unless this very batch has done it under that name; a crash right
      after the action repeats it. `batch.put_aside(rows)` keeps rows with the columns `raw` BINARY and `reason`
      STRING as dead letters.
    - `foreach` names what Spark's own foreach takes: a function of a row, or a class that is made without arguments
      and has `process(row)`; `open(partition_id, epoch_id)` may say by False that a partition is done already, and
      `close(error)` is called after the last row. It runs in the tasks.
    """

    type: Literal["python"] = "python"
    each_batch: CodeName | None = Field(
        None,
        description="`module:function`, called with the rows and the batch, on the driver.",
        pattern=r"^\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*$",
        max_length=200,
    )
    foreach: CodeName | None = Field(
        None,
        description="`module:Class` or `module:function`, for single rows.",
        pattern=r"^\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*$",
        max_length=200,
    )

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("at-least-once", "a batch that is run again must change nothing; `batch.once` helps")
    )
    example: ClassVar[str] = "{of: counts, type: python, each_batch: 'deliveries:mail_counts'}"

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.each_batch is None) == (self.foreach is None):
            raise PydanticCustomError("code", "a python sink has `each_batch` or `foreach`: exactly one of them")
        return self

    @property
    def declared_capabilities(self) -> SinkCapabilities:
        # A function may read its rows as often as it likes.
        return replace(self.capabilities, native=self.foreach is not None, single_pass=self.each_batch is None)

    def judge(self, rows: DataFrame) -> None:
        self._code()

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        return writer.foreach(self._code()).start()

    def write(self, rows: DataFrame, batch: Batch) -> None:
        code = self._code()
        try:
            if self.each_batch is not None:
                code(rows, batch)
            else:
                _for_each_row(rows, code, batch.number)
        except Fault:
            raise
        except Exception as error:
            said, place = _raised(error)
            raise Fault("PYTHON001", f"`{self._name}` fails{place}: {said}",
                        "change the code at that line; the next run repeats the batch", (self._key,)
                        ) from error  # fmt: skip

    @property
    def _key(self) -> str:
        return "foreach" if self.foreach is not None else "each_batch"

    @property
    def _name(self) -> str:
        return self.foreach or self.each_batch or ""

    def _code(self) -> Any:
        """What is called: the function, or an object of the class. Raises Fault."""
        try:
            found = load_code(self._name)
            code = found() if self.foreach is not None and inspect.isclass(found) else found
        except Exception as error:
            raise self._unusable(_why_not_loaded(self._name, error)) from error
        if reason := _why_not_callable(code, 2 if self.each_batch is not None else 1):
            raise self._unusable(reason)
        return code

    def _unusable(self, reason: str) -> Fault:
        fix = {
            "each_batch": "name a function of a module in the project: `def save(rows, batch): …`",
            "foreach": "name a class of a module in the project that has `process(self, row)`",
        }[self._key]
        return Fault("PYTHON002", f"`{self._name}` cannot be used: {reason}", fix, (self._key,))


def _why_not_loaded(name: str, error: Exception) -> str:
    module_name, _, attribute = name.partition(":")
    if where := line_of(error):
        return f"{_said(error)}, at {where.file}:{where.line}"
    if isinstance(error, ModuleNotFoundError):
        return f"there is no module `{error.name or module_name}`"
    if isinstance(error, AttributeError) and (module := sys.modules.get(module_name)):
        return f"`{module_name}` has no `{attribute}`{did_you_mean(attribute, vars(module))}"
    return _said(error)


def _why_not_callable(code: Any, arguments: int) -> str | None:
    call = code if inspect.isroutine(code) else getattr(code, "process", code)
    if not callable(call):
        return "it is no function, and has no method `process`" if arguments == 1 else "it is no function"
    if inspect.iscoroutinefunction(call) or inspect.isgeneratorfunction(call):
        return "it is an `async` function or a generator: calling it would do nothing"
    try:
        inspect.signature(call).bind(*(None,) * arguments)
    except TypeError:
        return "it does not take the rows and the batch" if arguments == 2 else "it does not take one row"
    except ValueError:
        return None  # one that is written in C does not tell what it takes
    return None


def _for_each_row(rows: DataFrame, code: Any, epoch: int) -> None:
    """What Spark's own foreach does, for a query that feeds other sinks too."""

    def of_partition(partition: Iterator[Row]) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        process, error = getattr(code, "process", code), None
        opened = code.open(context.partitionId() if context else 0, epoch) if hasattr(code, "open") else True
        try:
            for row in partition if opened else ():
                process(row)
        except Exception as raised:
            error = raised
            raise
        finally:
            if hasattr(code, "close"):
                code.close(error)

    rows.foreachPartition(of_partition)


def _raised(error: Exception) -> tuple[str, str]:
    """What the user's code raised, on the driver or in a task, and its line."""
    links = with_workers(thrown_by(error))
    raised = next((link for link in reversed(links) if any(is_users(file) for file, _ in link.lines)), None)
    if raised is None:  # Spark itself failed in a call of the user's code
        where, last = line_of(error), links[-1]
        name = "" if last.condition else f"{last.name}: "
        return f"{name}{_first_line(last.message)}", f" at {where.file}:{where.line}" if where else ""
    file, line = next(one for one in reversed(raised.lines) if is_users(one[0]))
    return f"{raised.name}: {_first_line(raised.message)}".rstrip(": "), f" at {shown(file)}:{line}"


def _first_line(text: str) -> str:
    return "".join(text.strip().splitlines()[:1])


def _said(error: Exception) -> str:
    return ": ".join((type(error).__name__, *str(error).strip().splitlines()[:1]))
