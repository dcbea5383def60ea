"""A step in Python."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from penstock.facts.stored import BatchCode
from penstock.problems import did_you_mean
from penstock.spec import Name
from penstock.transforms.step import Code, OutputMode, StepSpec
from penstock.user_code import load_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FunctionNotFound(LookupError):
    """`module:function` names nothing; the message says what is missing."""


class Python(StepSpec):
    """A function from DataFrames to a DataFrame; its parameters are the names of its inputs. It runs on the driver."""

    key: ClassVar[str] = "python"
    python: Name = Field(
        description="`module:function`, in a module of the project.",
        pattern=r"^\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*$",
        max_length=200,
    )

    example: ClassVar[str] = "{python: steps:unique_orders}"

    @property
    def code(self) -> str | None:
        return self.python

    def apply(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: OutputMode, code: Code | None = None
    ) -> DataFrame:
        result: DataFrame = (code or load_code(self.python))(**inputs)
        return result


def name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def parameters_in_source(name: str, root: Path) -> tuple[str, ...]:
    """The parameters of `module:function`, read from its text: nothing is run. Raises FunctionNotFound."""
    module_name, _, function_name = name.partition(":")
    file = module_file(module_name, root)
    if file is None:
        known = [path.stem for path in root.glob("*.py")]
        raise FunctionNotFound(f"there is no module `{module_name}` in the project{did_you_mean(module_name, known)}")
    try:
        functions = _functions_in(file, file.stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FunctionNotFound(f"`{file.name}` is not Python: {error}") from None
    if function_name not in functions:
        raise FunctionNotFound(
            f"`{module_name}` has no function `{function_name}`{did_you_mean(function_name, functions)}"
        )
    return functions[function_name]


def batch_code_in_source(name: str, root: Path) -> BatchCode | None:
    """What the text of a function for batches tells; None where it cannot be read. Nothing is run."""
    found = _function_in_source(name, root)
    if found is None:
        return None
    _, function = found
    parameters = [argument.arg for argument in function.args.args]
    parts = list(ast.walk(function))
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    writes = [part for part in parts if isinstance(part, ast.Attribute) and part.attr in ("write", "writeTo")]
    return BatchCode(len(writes), len(parameters) > 1 and parameters[1] in names)


def _function_in_source(name: str, root: Path) -> tuple[Path, ast.FunctionDef] | None:
    module_name, _, function_name = name.partition(":")
    file = module_file(module_name, root)
    if file is None or not file.is_relative_to(root):
        return None
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function_name]
    return (file, found[-1]) if found else None


def actions_in_source(name: str, root: Path, streams: set[str]) -> list[tuple[Path, int, str]]:
    """Where a step's function asks a stream for rows, as `show()` does: file, line, call. Nothing is run."""
    found = _function_in_source(name, root)
    if found is None:
        return []
    file, function = found
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return [(file, call.lineno, call.func.attr) for call in calls
            if isinstance(call.func, ast.Attribute) and _asks_for_rows(call.func, streams)]  # fmt: skip


def _asks_for_rows(method: ast.Attribute, streams: set[str]) -> bool:
    """`orders.show()` does, and `orders.where(…).count()`; `orders.groupBy(…).count()` does not."""
    before: ast.expr = method.value
    methods = []
    while isinstance(before, (ast.Call, ast.Attribute)):
        if isinstance(before, ast.Attribute):
            methods.append(before.attr)
        before = before.func if isinstance(before, ast.Call) else before.value
    if not isinstance(before, ast.Name) or before.id not in streams or _LAZY.intersection(methods):
        return False
    return method.attr in _ACTIONS


_ACTIONS = frozenset(
    ["collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show", "tail", "take", "toPandas",
     "toArrow", "toLocalIterator"]
)  # fmt: skip
_LAZY = frozenset(["groupBy", "groupby", "rollup", "cube", "columns", "schema", "dtypes"])


@cache
def _functions_in(file: Path, modified_ns: int) -> dict[str, tuple[str, ...]]:
    """By name, the parameters of a module's functions. Kept as long as the file stays the same."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    arguments = {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {
        name: tuple(argument.arg for argument in (*found.posonlyargs, *found.args, *found.kwonlyargs))
        for name, found in arguments.items()
    }


def module_file(module_name: str, root: Path) -> Path | None:
    """The file of a module of the project, or else of an installed one."""
    relative = Path(*module_name.split("."))
    for candidate in (root / relative.with_suffix(".py"), root / relative / "__init__.py"):
        if candidate.is_file():
            return candidate
    if module_name.partition(".")[0] in sys.stdlib_module_names:
        return None
    try:
        spec = importlib.util.find_spec(module_name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
