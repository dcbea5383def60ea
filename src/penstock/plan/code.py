"""The user's code as hashes that comments, layout and docstrings do not change.

The hash of a function covers the names of its module that it uses, and the modules of the project that these import.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path


def code_hash(name: str, root: Path) -> str | None:
    """The hash of `module:name`, with all that it uses of the project; None where the project has no such module."""
    module, _, attribute = name.partition(":")
    file = _file(module, root)
    return None if file is None else _digest(sorted(_used(file, attribute.partition(".")[0] or None, root, set())))


def text_hash(source: str) -> str:
    """The hash of code that is in no module, such as that of a notebook."""
    return _digest([_normal(ast.parse(source))])


def _used(file: Path, name: str | None, root: Path, seen: set[tuple[Path, str | None]]) -> Iterator[str]:
    """The parts of the project's code that one name of a module uses, itself included; with None, the whole module."""
    if (file, name) in seen:
        return
    seen.add((file, name))
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        yield f"unreadable {file.name}"
        return
    defined = _defined(tree)
    if name is not None and name not in defined:
        name = None  # it comes from elsewhere, or is made when the module runs
    waiting = [name] if name is not None else list(defined)
    if name is None:
        yield _normal(tree)
    done: set[str] = set()
    while waiting:
        current = waiting.pop()
        if current is None or current in done:
            continue
        done.add(current)
        for part in defined[current]:
            if name is not None:
                yield _normal(part)
            for module, imported in _imports(part, file, root):
                yield from _used(module, imported, root, seen)
            waiting += [one.id for one in ast.walk(part) if isinstance(one, ast.Name) and one.id in defined]


def _defined(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """By name, what a module makes of it: a function, a class, a value or an import."""
    found: dict[str, list[ast.stmt]] = {}
    for part in tree.body:
        for name in _names(part):
            found.setdefault(name, []).append(part)
    return found


def _names(part: ast.stmt) -> Iterator[str]:
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield part.name
    elif isinstance(part, ast.Import | ast.ImportFrom):
        for alias in part.names:
            yield (alias.asname or alias.name).partition(".")[0]
    else:
        for one in ast.walk(part):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                yield one.id
            elif isinstance(one, ast.FunctionDef | ast.ClassDef):
                yield one.name


def _imports(part: ast.AST, file: Path, root: Path) -> Iterator[tuple[Path, str | None]]:
    """The modules of the project that a piece of code imports, and the name that it takes from each."""
    for one in ast.walk(part):
        if isinstance(one, ast.Import):
            for alias in one.names:
                if found := _file(alias.name, root):
                    yield found, None
        elif isinstance(one, ast.ImportFrom):
            package = file.parent if one.level else None
            for _ in range(max(0, one.level - 1)):
                package = package.parent if package else None
            base = package or root
            module = one.module or ""
            for alias in one.names:
                inner = _file(f"{module}.{alias.name}".strip("."), base)
                if inner:
                    yield inner, None
                elif module and (found := _file(module, base)):
                    yield found, None if alias.name == "*" else alias.name


def _file(module: str, root: Path) -> Path | None:
    relative = Path(*module.split("."))
    candidates = (root / relative.with_suffix(".py"), root / relative / "__init__.py")
    return next((one for one in candidates if one.is_file()), None)


def _normal(part: ast.AST) -> str:
    """Code without its comments, layout, docstrings and annotations."""
    for one in ast.walk(part):
        if isinstance(one, ast.arg):
            one.annotation = None
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            one.returns = None
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            first = one.body[0] if one.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                one.body = one.body[1:] or [ast.Pass()]
    return ast.dump(part)


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
