"""An exception as plain data, so that judging it needs neither Spark nor a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Thrown:
    """One exception in a chain of causes."""

    classes: tuple[str, ...]
    """Its class and the classes above it, such as `java.io.EOFException`, `java.io.IOException`."""
    message: str = ""
    """For people. A value of a row can be in it, so nothing is decided by searching it."""
    condition: str = ""
    """Spark's name of the error, such as `USER_RAISED_EXCEPTION`; empty where it has none."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What Spark put into the message, by name."""
    sqlstate: str = ""
    """What a database says, such as `57P01`, or Spark for a condition of its own."""
    frames: tuple[str, ...] = ()
    """The Java classes on top of its stack, innermost first."""
    python: bool = False
    """Was it raised by Python, and not by Java?"""
    lines: tuple[tuple[str, int], ...] = ()
    """The files and lines of Python on its stack, innermost last."""
    errno: int = 0
    """The operating system's number of the error, where Python reports it."""
    fragment: str = ""
    """The piece of the user's SQL that Spark names as the place of the error."""

    @property
    def name(self) -> str:
        """The name of its class, without the package."""
        return self.classes[0].rpartition(".")[2]

    def is_a(self, *classes: str) -> bool:
        """Is it of one of these classes, or of one below?"""
        return any(name in self.classes for name in classes)
