"""Paths as users write them: local, relative to the project, or a Hadoop URL such as `s3a://bucket/orders`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Annotated, get_args

from pydantic import AfterValidator

_URL = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:/")
_GLOB = re.compile(r"[*?\[{]")


class _PathMark:
    """Marks a field whose text is a path."""


def _checked(path: str) -> str:
    if "\0" in path:
        raise ValueError("holds a NUL character, which no path can")
    return path


PathText = Annotated[str, _PathMark(), AfterValidator(_checked)]
"""A path in a spec: the engine makes it absolute before Spark sees it."""


def is_path(annotation: object, metadata: Iterable[object] = ()) -> bool:
    """Is this the type of a path, plain or optional?"""
    if any(isinstance(mark, _PathMark) for mark in (*metadata, *getattr(annotation, "__metadata__", ()))):
        return True
    return any(is_path(inner) for inner in get_args(annotation))


def is_url(path: str) -> bool:
    return bool(_URL.match(path))


def is_local(path: str) -> bool:
    return not is_url(path) or path.startswith("file:/")


def to_local(path: str) -> Path:
    """The local path behind a plain path or a `file:` URL."""
    return Path(re.sub(r"^file:/+", "/", path))


@cache
def absolute(path: str, root: Path) -> str:
    """`path` as Spark gets it. Relative paths start at the project's root; URLs stay as they are."""
    return path if is_url(path) else str(root / path)


def leaves(path: str) -> bool:
    """Does a relative path climb out of the folder that it starts at? A link inside that folder stays inside."""
    return not is_url(path) and normpath(path).partition("/")[0] == ".."


@cache
def has_glob(path: str) -> bool:
    return bool(_GLOB.search(path))


def fixed_part(path: str) -> str:
    """The folder above the first glob: `in/2026-*/x` → `in`."""
    if not has_glob(path):
        return path
    parts = PurePosixPath(path).parts
    first = next(index for index, part in enumerate(parts) if has_glob(part))
    return str(PurePosixPath(*parts[:first])) if first else "."


def matches(pattern: str, path: str) -> bool:
    """Would a reader of `pattern` see files under `path`, or a reader of `path` those under `pattern`?

    Compared part by part down to the shallower of the two, as Spark does for its archive folder.
    """
    ours, theirs = _parts(pattern), _parts(path)
    depth = min(len(ours), len(theirs))
    if ours[:depth] == theirs[:depth]:
        return True
    return any(map(has_glob, (pattern, path))) and all(map(_alike, ours, theirs))


def _alike(left: str, right: str) -> bool:
    return left == right or fnmatchcase(right, _to_fnmatch(left)) or fnmatchcase(left, _to_fnmatch(right))


def is_within(pattern: str, path: str) -> bool:
    """Would a reader of `pattern` see files placed under `path`?"""
    return len(_parts(pattern)) <= len(_parts(path)) and matches(pattern, path)


@cache
def _parts(path: str) -> tuple[str, ...]:
    if is_url(path):
        scheme, _, rest = path.partition(":")
        local = scheme == "file"
        return tuple(part for part in ("" if local else scheme, *rest.split("/")) if part)
    return tuple(part for part in PurePosixPath(normpath(path)).parts if part not in ("/", "."))


def _to_fnmatch(part: str) -> str:
    # Hadoop's {a,b} has no fnmatch spelling; a star is the careful answer: it may match too much, never too little.
    return re.sub(r"\{[^}]*\}", "*", part).replace("[^", "[!")


def shown(file: str) -> str:
    """A file as people name it: relative to where they are, if it is below. A cell of a notebook is `In[3]`."""
    if cell := _cell(file):
        return cell
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _cell(file: str) -> str | None:
    """The name of the notebook cell that IPython compiled under the name of this file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    known = shell.compile.format_code_name(file) if shell else None
    return known[1] if known else None


def braces_expanded(pattern: str) -> list[str]:
    """Hadoop's `{a,b}` written out: one pattern for each choice."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    choices = (pattern[: found.start()] + choice + pattern[found.end() :] for choice in found[1].split(","))
    return [one for choice in choices for one in braces_expanded(choice)]
