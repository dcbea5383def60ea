"""The logs that sources keep in a checkpoint, against the offsets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.checkpoint.damage import Damage
from penstock.checkpoint.looked import Look, Unreadable

_COMPACT = ".compact"
_LOG_OFFSET = "logOffset"
_MOST_BYTES = 100_000
"""A start reads no larger log; Spark itself reads all of it right after."""


def source_logs(look: Look, offsets: Sequence[Any], out: str, *, deep: bool) -> Iterator[Damage]:
    """What is wrong with `sources/`. `offsets` are those of the newest batch."""
    logs = sorted((name for name, entry in look.entries("sources").items() if entry.is_folder), key=_number)
    ends = [one[_LOG_OFFSET] if isinstance(one, dict) and set(one) == {_LOG_OFFSET} else None for one in offsets]
    found = {log: _FileLog(look, log) for log in logs}
    for seen in found.values():
        yield from seen.damages(out, deep)
    of_files = [log for log in logs if found[log].is_of_files]
    needed = [end for end in ends if isinstance(end, int) and end >= 0]
    if needed and not of_files:
        yield Damage("source_log", look.path("sources"), f"lacks the log of files up to entry {max(needed)}", out)
    elif len(logs) == len(ends):
        for log, end in zip(logs, ends, strict=True):
            if isinstance(end, int) and end >= 0:
                yield from found[log].reaches(end, out)
    elif needed:  # a source that is read twice has one log and two offsets
        for log in of_files if len(of_files) == 1 else ():
            yield from found[log].reaches(max(needed), out)


class _FileLog:
    """The log of a file source: one entry for each batch of its own, and all before in a compact one."""

    def __init__(self, look: Look, name: str) -> None:
        self.look, self.name = look, name
        files = {name: entry for name, entry in look.entries("sources", name).items() if not entry.is_folder}
        self.sizes = {file: entry.size for file, entry in files.items()}
        self.plain = {int(file) for file in files if file.isdigit()}
        self.compact = {
            int(file.removesuffix(_COMPACT))
            for file in files
            if file.endswith(_COMPACT) and file.removesuffix(_COMPACT).isdigit()
        }
        self.newest = max(self.plain | self.compact, default=None)
        self.is_of_files = bool(self.compact) or len(self.plain) > 1 or self._first_names_files()

    def file(self, number: int) -> str:
        return f"{number}{_COMPACT}" if number in self.compact else str(number)

    def path(self, number: int) -> str:
        return self.look.path("sources", self.name, self.file(number))

    @property
    def needed(self) -> list[int]:
        """What Spark reads at a start: the newest compact entry, and all after it."""
        if self.newest is None:
            return []
        base = max(self.compact, default=min(self.plain, default=0))
        return list(range(base if self.compact else 0, self.newest + 1)) if self.is_of_files else [self.newest]

    def damages(self, out: str, deep: bool) -> Iterator[Damage]:
        if self.newest is None:
            return
        needed = self.needed
        for number in needed:
            if number not in self.plain | self.compact:
                yield Damage("source_log", self.path(number), "is missing", out)
            elif self.sizes[self.file(number)] == 0:
                yield Damage("source_log", self.path(number), "is empty", out)
            elif deep or (number == self.newest and self.sizes[self.file(number)] <= _MOST_BYTES):
                yield from self._read(number, out)

    def reaches(self, end: int, out: str) -> Iterator[Damage]:
        if self.newest is None or self.newest < end:
            what = f"ends with entry {self.newest}, and the offsets with entry {end}"
            yield Damage("source_log", self.look.path("sources", self.name), what, out)

    def _first_names_files(self) -> bool:
        if self.newest is None:
            return False
        try:
            return '"path"' in self.look.read("sources", self.name, self.file(self.newest))
        except Unreadable:
            return False

    def _read(self, number: int, out: str) -> Iterator[Damage]:
        try:
            text = self.look.read("sources", self.name, self.file(number))
            if not self.is_of_files:
                return  # what other sources note here is their own affair
            version, *lines = text.rstrip("\n").split("\n")
            if not (version.startswith("v") and version[1:].isdigit()):
                yield Damage("unreadable", self.path(number), "does not begin with a version", out)
                return
            entries = [json.loads(line) for line in lines]
        except Unreadable as error:
            yield Damage(error.kind, self.path(number), str(error), out)
            return
        except ValueError:
            yield Damage("unreadable", self.path(number), "holds a line that is not JSON", out)
            return
        batches = {entry.get("batchId") if isinstance(entry, dict) else None for entry in entries}
        if batches != (set(range(number + 1)) if number in self.compact else {number}):
            what = "holds the files of other entries than its name says"
            yield Damage("source_log", self.path(number), what, out)


def _number(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (1_000_000, name)
