"""Where a source begins in a new checkpoint, in the words of Spark's own files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import quote

from penstock.notation.paths import has_glob, is_local, to_local

_HIDDEN = (".", "_")


@dataclass(frozen=True)
class Beginning:
    """What a checkpoint says of a source that has read up to some place."""

    offset: str
    """Its line in a file of offsets."""
    log: Mapping[str, str] = field(default_factory=dict)
    """By name, the files of its own log."""


def after_files(path: str, pattern: str | None, moment_ms: int | None) -> Beginning | None:
    """A file source that has read what is in its folder, or what was changed before a moment. Local files only."""
    if not is_local(path):
        return None
    found = [
        (file, milliseconds)
        for file in _files(path)
        if not pattern or fnmatch(file.name, pattern)
        for milliseconds in [file.stat().st_mtime_ns // 1_000_000]
        if moment_ms is None or milliseconds < moment_ms
    ]
    if not found:
        return Beginning("-")
    entries = [
        json.dumps({"path": f"file://{quote(str(file))}", "timestamp": moment, "batchId": 0}, separators=(",", ":"))
        for file, moment in sorted(found, key=lambda one: (one[1], one[0]))
    ]
    return Beginning('{"logOffset":0}', {"0": "\n".join(["v1", *entries])})


def _files(path: str) -> Iterator[Path]:
    local = to_local(path)
    roots = Path(local.anchor).glob(str(local.relative_to(local.anchor))) if has_glob(path) else iter([local])
    for root in roots:
        if root.is_file():
            yield root
        for file in root.rglob("*") if root.is_dir() else ():
            parts = file.relative_to(root).parts
            if file.is_file() and not any(part.startswith(_HIDDEN) and "=" not in part for part in parts):
                yield file
