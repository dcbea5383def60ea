"""Code of the user's: found by its name, and where in it an error came from."""

from __future__ import annotations

import importlib
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from penstock.notation.paths import shown
from penstock.problems import Where

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


def is_users(file: str) -> bool:
    """Is a file of Python code the user's own, and not one of a library?"""
    return not _is_beneath(file) and "/site-packages/" not in file


def _is_beneath(file: str) -> bool:
    """Does it belong to Python, Spark or Penstock?"""
    if file.startswith("<frozen") or "/pyspark/" in file or "/py4j/" in file:
        return True
    path = Path(file)
    return path.is_relative_to(_OURS) or (path.is_relative_to(_STDLIB) and "/site-packages/" not in file)
