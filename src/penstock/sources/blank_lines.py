"""Lines of a CSV file that Spark takes for blank although they are not: NULs or other control characters only.

Spark's CSV reader drops a line that is empty after a trim, and Java's trim cuts every character up to the space. The
line leaves no row and no bad record, so only a look at the file finds it.
"""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.notation.paths import is_local

if TYPE_CHECKING:
    from penstock.sources.files import Files

_BLANK = b"\t\n\v\f\r "
_CONTROL = frozenset(range(0x20)) - frozenset(_BLANK)
_ALL_ELSE = bytes(frozenset(range(0x100)) - _CONTROL)
_CUT = bytes(range(0x21))
_CHUNK_BYTES = 1 << 20
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
_OTHER_CODECS = (".deflate", ".lz4", ".snappy", ".zst", ".xz")


def can_look(source: Files) -> bool:
    """Are such lines bad records of this source, and can they be found in its files?"""
    form = source.format
    lines = form.type == "csv" and not getattr(form, "multi_line", None) and not source.lives
    return lines and source.judges_records and is_local(source.path) and _is_like_ascii(getattr(form, "encoding", None))


def dropped_lines(file: Path, line_sep: str | None = None) -> list[int]:
    """The numbers, from 1, of the lines that Spark drops although they are not blank. Raises OSError.

    A file without control characters is passed through once, at about 1 ms for each megabyte.
    """
    if file.suffix in _OTHER_CODECS:
        return []
    with _OPENERS.get(file.suffix, open)(file, "rb") as opened:
        if not any(chunk.translate(None, _ALL_ELSE) for chunk in iter(partial(opened.read, _CHUNK_BYTES), b"")):
            return []
        opened.seek(0)
        return [number for number, line in enumerate(_lines(opened, line_sep), 1) if _is_dropped(line)]


def _is_dropped(line: bytes) -> bool:
    return not line.strip(_CUT) and bool(line.strip(_BLANK))


def _lines(opened: IO[bytes], line_sep: str | None) -> Iterator[bytes]:
    if line_sep is not None and line_sep.strip("\r\n"):
        yield from opened.read().split(line_sep.encode())
        return
    for line in opened:
        yield from line.splitlines()  # a carriage return ends a line too


def _is_like_ascii(encoding: str | None) -> bool:
    """Has each of the characters in question one byte, the same as in ASCII?"""
    sample = "".join(map(chr, range(0x21)))
    try:
        return encoding is None or sample.encode(encoding) == sample.encode("ascii")
    except (LookupError, UnicodeError):
        return False
