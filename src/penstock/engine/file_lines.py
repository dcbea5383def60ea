"""The text of a file that a dead letter came from, as long as it is there and on this machine."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from urllib.parse import unquote

from penstock.engine.dead_letters import Letter
from penstock.paths import is_local, to_local

_LARGEST_BYTES = 1_000_000_000
"""A larger file is not looked through."""


def local_file(letter: Letter) -> Path | None:
    """The file that a letter came from, as a path of this machine."""
    return to_local(unquote(letter.file)) if letter.file is not None and is_local(letter.file) else None


def lines_of(letter: Letter) -> tuple[int, ...]:
    """The lines, counted from 1, that hold the record as it was put aside; none if that cannot be told."""
    file = local_file(letter)
    if file is None or not letter.raw:
        return ()
    content = content_of(file) or b""
    lines = tuple(number for number, line in enumerate(content.splitlines(), 1) if line == letter.raw)
    if lines or b"\n" not in letter.raw:
        return lines
    found = content.find(letter.raw)  # a record of several lines: the first of them
    return (content.count(b"\n", 0, found) + 1,) if found >= 0 else ()


def first_line(file: Path, encoding: str) -> str | None:
    try:
        return (content_of(file) or b"").decode(encoding).removeprefix("\ufeff").splitlines()[0]
    except (ValueError, IndexError, LookupError):
        return None


def content_of(file: Path) -> bytes | None:
    """The bytes of a file, unpacked; None if they cannot be had."""
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            return None
        content = file.read_bytes()
        if file.suffix == ".gz":
            return gzip.decompress(content)
        return bz2.decompress(content) if file.suffix == ".bz2" else content
    except (OSError, EOFError, ValueError):
        return None
