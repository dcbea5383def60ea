"""Modules that examples name, so that what they show can be judged."""

from __future__ import annotations

import re
from pathlib import Path

_NAMED = re.compile(r"with: \W?(\w+):(\w+)")
_FUNCTION = "def {name}(key, rows, state): ...\n"
_CLASS = """
class {name}(StatefulProcessor):
    def init(self, handle): ...
    def handleInputRows(self, key, rows, timerValues): ...
"""


def make_modules(text: str, root: Path) -> None:
    """Makes every processor and function that a pipeline names after `with:`."""
    for module, name in _NAMED.findall(text):
        (root / f"{module}.py").write_text((_CLASS if name[0].isupper() else _FUNCTION).format(name=name))
