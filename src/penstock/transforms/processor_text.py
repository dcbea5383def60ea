"""What the text of a module tells of a stateful processor: nothing is run, and Spark is not needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from penstock.problems import Fault, did_you_mean
from penstock.transforms.python import module_file

BASE = "StatefulProcessor"
_MUST_DEFINE = ("init", "handleInputRows")
_PLACE = ("process", "with")
FIX = "name a class that is made from `pyspark.sql.streaming.StatefulProcessor`, as `module:Class`"


def require_processor(name: str, options: Mapping[str, Any], root: Path) -> None:
    """Raises Fault if the text of `module:Class` shows that it is no processor, or that the options do not fit it."""
    module_name, _, class_name = name.partition(":")
    file = module_file(module_name, root)
    if file is None:
        known = [path.stem for path in root.glob("*.py")]
        raise not_a_processor(name, f"there is no module `{module_name}`{did_you_mean(module_name, known)}")
    if "." in class_name:
        return  # a class in a class: Python decides
    try:
        module = _read(file, file.stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise not_a_processor(name, f"`{file.name}` is not Python: {error}") from None
    if class_name not in module.classes:
        if class_name in module.functions:
            raise not_a_processor(name, "it is a function")
        if class_name in module.others or module.imports_all:
            return
        near = did_you_mean(class_name, module.classes)
        raise not_a_processor(name, f"`{module_name}` has no class `{class_name}`{near}")
    lineage = list(_lineage(class_name, module))
    if None in lineage:
        return  # made from a class of another module: Python decides
    if not any(_is_base(base) for one in lineage if one for base in one.bases):
        raise not_a_processor(name, "it is made from another class")
    defined = {node.name for one in lineage if one for node in one.body if isinstance(node, ast.FunctionDef)}
    missing = [method for method in _MUST_DEFINE if method not in defined]
    if missing:
        raise not_a_processor(name, f"it does not define {' and '.join(f'`{method}`' for method in missing)}")
    if wrong := _misfit([one for one in lineage if one], options):
        raise Fault("PROCESS002", f"the options do not fit `{name}`: {wrong[0]}", wrong[1], ("process", "options"))


def not_a_processor(name: str, why: str) -> Fault:
    return Fault("PROCESS001", f"`{name}` is no stateful processor: {why}", FIX, _PLACE)


@dataclass(frozen=True)
class _Module:
    classes: dict[str, ast.ClassDef]
    functions: frozenset[str]
    others: frozenset[str]
    """Names that are imported or assigned."""
    imports_all: bool


@cache
def _read(file: Path, modified_ns: int) -> _Module:
    body = ast.parse(file.read_text(encoding="utf-8")).body
    imported = [alias for node in body if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    # Whatever stands in an `if` or `try` may be defined there.
    nested = [node for node in body if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Import)]
    names = [one for node in nested for one in ast.walk(node)]
    assigned = {one.id for one in names if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    assigned |= {one.name for one in names if isinstance(one, ast.ClassDef)}
    return _Module(
        {node.name: node for node in body if isinstance(node, ast.ClassDef)},
        frozenset(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)),
        frozenset({alias.asname or alias.name for alias in imported} | assigned),
        any(alias.name == "*" for alias in imported),
    )


def _lineage(name: str, module: _Module) -> Iterator[ast.ClassDef | None]:
    """The class and those of its module that it is made from; None for one of another module."""
    found = module.classes[name]
    yield found
    for base in found.bases:
        if isinstance(base, ast.Name) and base.id in module.classes and base.id != name:
            yield from _lineage(base.id, module)
        elif not _is_base(base) and not (isinstance(base, ast.Name) and base.id in ("object", "ABC")):
            yield None


def _is_base(base: ast.expr) -> bool:
    return (isinstance(base, ast.Name) and base.id == BASE) or (isinstance(base, ast.Attribute) and base.attr == BASE)


def _misfit(lineage: list[ast.ClassDef], options: Mapping[str, Any]) -> tuple[str, str] | None:
    """What is wrong with the options, and what the constructor takes; None where the text does not tell."""
    if any(one.decorator_list or one.keywords for one in lineage):
        return None  # a dataclass, say
    made = [
        node.args
        for one in lineage
        for node in one.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    if not made:
        return (f"it takes none, and gets `{next(iter(options))}`", "remove `options`") if options else None
    found = made[0]
    plain = [*found.posonlyargs, *found.args][1:]
    with_default = {one.arg for one in plain[len(plain) - len(found.defaults) :]} if found.defaults else set()
    with_default |= {one.arg for one, default in zip(found.kwonlyargs, found.kw_defaults, strict=True) if default}
    names = [one.arg for one in (*plain, *found.kwonlyargs)]
    takes = f"its constructor takes: {', '.join(names) or 'nothing'}"
    for option in options:
        if option not in names and found.kwarg is None:
            return f"it takes no `{option}`{did_you_mean(option, names)}", takes
    missing = [name for name in names if name not in with_default and name not in options]
    return (f"it needs `{missing[0]}`", takes) if missing else None
