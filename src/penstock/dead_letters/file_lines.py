"""The text of a file that a dead letter came from, as long as it is there and on this machine."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from penstock.dead_letters.letters import Letter
from penstock.notation.paths import is_local, to_local

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
_LARGEST_BYTES = 1_000_000_000
"""A larger file is not looked through."""


def local_file(letter: Letter) -> Path | None:
    """The file that a letter came from, as a path of this machine."""
    return to_local(unquote(letter.file)) if letter.file is not None and is_local(letter.file) else None


def lines_of(letters: Iterable[Letter]) -> dict[tuple[str | None, bytes | None], tuple[int, ...]]:
    """By file and record, the lines, counted from 1, that hold the record as it was put aside; as far as that is known.

    Each file is read once.
    """
    wanted: dict[str, set[bytes]] = {}
    for letter in letters:
        if letter.file is not None and letter.raw:
            wanted.setdefault(letter.file, set()).add(letter.raw)
    return {
        (file, raw): lines
        for file, records in wanted.items()
        for raw, lines in _lines_in(_content(file), records).items()
    }


def _lines_in(content: bytes, records: set[bytes]) -> dict[bytes, tuple[int, ...]]:
    found: dict[bytes, tuple[int, ...]] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if line in records:
            found[line] = (*found.get(line, ()), number)
    for record in records:
        # A record of several lines: the first of them.
        if b"\n" in record and (start := content.find(record)) >= 0:
            found[record] = (content.count(b"\n", 0, start) + 1,)
    return found


def _content(file: str) -> bytes:
    return (content_of(to_local(unquote(file))) or b"") if is_local(file) else b""


def first_line(file: Path, encoding: str) -> str | None:
    try:
        with _OPENERS.get(file.suffix, open)(file, "rt", encoding=encoding) as lines:
            return str(next(iter(lines))).removeprefix("\ufeff").rstrip("\n")
    except (OSError, EOFError, ValueError, LookupError, StopIteration):
        return None


def content_of(file: Path) -> bytes | None:
    """The bytes of a file, unpacked; None if they cannot be had."""
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            return None
        with _OPENERS.get(file.suffix, open)(file, "rb") as opened:
            return bytes(opened.read())
    except (OSError, EOFError, ValueError):
        return None
