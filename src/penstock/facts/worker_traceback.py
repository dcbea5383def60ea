"""What a Python worker raised. Spark reports it as one text: the traceback that Python printed.

The text is read from its start. Python prints the frames first, and the exception's own words after them. So nothing
that an exception says, such as the value of a row, can be taken for a frame or for the exception's class.
"""

from __future__ import annotations

import builtins
import re

from penstock.facts.thrown import Thrown

IN_WORKER = "org.apache.spark.api.python.PythonException"
_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "(.+)", line (\d+)(?:, in .*)?')
_CLASS = re.compile(r"[A-Za-z_][\w.]*")
_ERRNO = re.compile(r"\[Errno (\d+)\] ")


def with_workers(chain: tuple[Thrown, ...]) -> tuple[Thrown, ...]:
    """The chain, with what a Python worker raised as one more cause behind Spark's exception for it."""
    links: list[Thrown] = []
    for link in chain:
        links.append(link)
        if link.is_a(IN_WORKER) and (raised := raised_in_worker(link.message)):
            links.append(raised)
    return tuple(links)


def raised_in_worker(text: str) -> Thrown | None:
    """The first exception of a traceback: with several, the others were raised because of it."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if _BEGIN not in lines[start : start + 1]:
        return None
    frames: list[tuple[str, int]] = []
    for number, line in enumerate(lines[start + 1 :], start + 1):
        if not line.startswith("  "):
            return _raised(line, "\n".join(lines[number + 1 :]), tuple(frames))
        if found := _FRAME.fullmatch(line):
            frames.append((found[1], int(found[2])))
    return None


def _raised(line: str, rest: str, frames: tuple[tuple[str, int], ...]) -> Thrown | None:
    name, _, message = line.partition(": ")
    if not _CLASS.fullmatch(name.rstrip(":")):
        return None
    kind = getattr(builtins, name, None)
    known = kind.__mro__[:-1] if isinstance(kind, type) else ()
    classes = tuple(f"builtins.{one.__name__}" for one in known) or (name,)
    found = _ERRNO.match(message) if "builtins.OSError" in classes else None
    text = "\n".join(filter(None, (message, rest.strip())))
    return Thrown(classes, text, python=True, lines=frames, errno=int(found[1]) if found else 0)
