"""What a run has left of a checkpoint: the newest batches and the sums of its small files, beside the manifest.

Spark's files have no sums of their own on most file systems, and a backup that is put back fits itself. The seal is
beside the checkpoint, not in it: so a checkpoint that is older than its seal, or other than it, is seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from penstock.checkpoint.damage import Damage
from penstock.checkpoint.looked import Look, Unreadable
from penstock.storage.storage import Storage

_SUFFIX = ".seal"
_NEWEST = 2


def seal_file(checkpoint: str) -> str:
    return checkpoint.rstrip("/") + _SUFFIX


def write(storage: Storage, checkpoint: str) -> None:
    """Notes what is there now. For a checkpoint that nothing writes to. Raises OSError."""
    look = Look(storage, checkpoint)
    said = {"offset": _newest(look, "offsets"), "manifest": _manifest(look), "files": dict(_sums(look))}
    storage.write_text(seal_file(checkpoint), json.dumps(said, indent=1) + "\n")


def broken(look: Look, newest_offset: int | None, out: str, *, every: bool) -> Iterator[Damage]:
    """What is not as the seal says: without `every`, only its newest batch. Files that are gone are not missed."""
    said = _read(look)
    sealed = said.get("offset")
    if isinstance(sealed, int) and (newest_offset is None or newest_offset < sealed):
        now = "no batch" if newest_offset is None else f"batch {newest_offset}"
        what = f"ends with {now}, and the last run has left it with batch {sealed}: an older copy was put back"
        yield Damage("not_as_left", look.root, what, out)
    if said.get("manifest") not in (None, _manifest(look)):
        what = "has another identity or other settings than at the last run"
        yield Damage("not_as_left", _manifest_file(look), what, out)
    for file, digest in said.get("files", {}).items() if every else ():
        parts = tuple(file.split("/"))
        if not look.is_file(*parts):
            continue
        if _digest(look.storage.read_bytes(look.path(*parts))) != digest:
            yield Damage("not_as_left", look.path(*parts), "has changed since the last run", out)


def _read(look: Look) -> dict[str, Any]:
    file = seal_file(look.root)
    if not look.storage.is_file(file):
        return {}
    try:
        said = json.loads(look.storage.read_text(file))
        return said if isinstance(said, dict) and isinstance(said.get("files", {}), dict) else {}
    except (ValueError, UnicodeDecodeError):
        return {}  # it guards, and nothing is built on it


def _sums(look: Look) -> Iterator[tuple[str, str]]:
    for log in ("offsets", "commits"):
        for batch in sorted(int(name) for name in look.entries(log) if name.isdigit())[-_NEWEST:]:
            content = look.storage.read_bytes(look.path(log, str(batch)))
            # Continuous Processing leaves an empty line, which the next start fills (after_continuous.py).
            if log == "commits" or content.split(b"\n")[1:2] != [b""]:
                yield f"{log}/{batch}", _digest(content)
    for operator in look.entries("state"):
        for file in _schemas(look, operator):
            yield "/".join(file), _digest(look.storage.read_bytes(look.path(*file)))
    for source, entry in look.entries("sources").items():
        if entry.is_folder:
            numbers = {
                int(name.removesuffix(".compact")): name
                for name in look.entries("sources", source)
                if name.removesuffix(".compact").isdigit()
            }
            compact = max((number for number, name in numbers.items() if name.endswith(".compact")), default=None)
            newest = max(numbers, default=None)
            for number in {compact, newest} - {None}:
                name = numbers[number or 0]
                try:
                    yield f"sources/{source}/{name}", _digest(look.content("sources", source, name))
                except Unreadable:
                    continue


def _schemas(look: Look, operator: str) -> Iterator[tuple[str, ...]]:
    """What Spark keeps of an operator for its life."""
    home = ("state", operator)
    stores = [name for name, entry in look.entries(*home, "0").items() if entry.is_folder and name != "SSTs"]
    files = [(*home, "_metadata", "metadata"), (*home, "0", "_metadata", "schema")]
    files += [(*home, "0", store, "_metadata", "schema") for store in stores if store != "_metadata"]
    yield from (file for file in files if look.is_file(*file))


def _manifest_file(look: Look) -> str:
    return look.root.rstrip("/") + ".json"


def _manifest(look: Look) -> str | None:
    """The sum of what a manifest keeps for life; None where it cannot be read."""
    try:
        said = json.loads(look.storage.read_text(_manifest_file(look)))
        return _digest(json.dumps([said["id"], said["settings"]], sort_keys=True).encode())
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _newest(look: Look, log: str) -> int | None:
    return max((int(name) for name in look.entries(log) if name.isdigit()), default=None)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
