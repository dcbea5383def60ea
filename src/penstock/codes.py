"""What a code means that no rule raises. Each room has a `codes.py` for the codes that it raises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True)
class Code:
    """A code with its page in the docs."""

    code: str
    title: str
    why: str
    wrong: str = ""
    right: str = ""


CODES: tuple[Code, ...] = (
    Code(
        "CRASH001",
        "An unknown crash point",
        "`PENSTOCK_CRASH` names the place at which a test crashes a run, as `point` or `point:N`.",
    ),
)
"""Those of the modules that stand in no room."""


def all_codes() -> Iterator[Code]:
    """Those of every room. They are found by name: no room has to be listed, and none can be forgotten."""
    yield from CODES
    for file in sorted(Path(__file__).parent.glob("*/codes.py")):
        found: tuple[Code, ...] = import_module(f"penstock.{file.parent.name}.codes").CODES
        yield from found
