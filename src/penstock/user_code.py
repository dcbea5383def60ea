"""Code of the user's: found by its name, and where in it an error came from."""

from __future__ import annotations

import importlib
import re
import sysconfig
import traceback
from itertools import takewhile
from pathlib import Path
from typing import Any

from penstock.notation.paths import shown
from penstock.problems import Where

_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')
_OURS = Path(__file__).parent
_STDLIB = Path(sysconfig.get_path("stdlib"))


def load_code(name: str) -> Any:
    """What `module:name` means, imported."""
    module_name, _, attribute = name.partition(":")
    found: Any = importlib.import_module(module_name)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def line_of(error: BaseException) -> Where | None:
    """The last line of the user's own code that the error passed through."""
    passed = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_beneath(frame.filename)]
    own = [frame for frame in passed if "/site-packages/" not in frame.filename] or passed
    return Where(shown(own[-1].filename), own[-1].lineno or 1) if own else None


def raised_in_task(error: BaseException) -> tuple[str, Where | None] | None:
    """What the user's code said in a Spark task, and its line: Spark's error holds the traceback as text."""
    lines = iter(str(error).splitlines())
    if not any("Traceback (most recent call last)" in line for line in lines):
        return None
    block = [line for line in takewhile(lambda line: not line.startswith("\tat "), lines) if line.strip()]
    frames = [found for line in block if (found := _FRAME.match(line)) and not _is_beneath(found[1])]
    where = Where(shown(frames[-1][1]), int(frames[-1][2])) if frames else None
    return (block[-1].strip(), where) if block else None


def _is_beneath(file: str) -> bool:
    """Does it belong to Python, Spark or Penstock?"""
    if file.startswith("<frozen") or "/pyspark/" in file or "/py4j/" in file:
        return True
    path = Path(file)
    return path.is_relative_to(_OURS) or (path.is_relative_to(_STDLIB) and "/site-packages/" not in file)
