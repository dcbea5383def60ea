"""Small files on a local disk or any Hadoop file system, behind one narrow face."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.notation.paths import braces_expanded, has_glob, to_local


@dataclass(frozen=True)
class Entry:
    """One thing in a folder."""

    name: str
    path: str
    is_folder: bool
    size: int
    modified_ms: int


class Storage(Protocol):
    """What Penstock needs of a file system. Paths are absolute, or URLs. Errors are OSError."""

    def exists(self, path: str) -> bool: ...
    def is_file(self, path: str) -> bool: ...
    def entries(self, folder: str) -> list[Entry]:
        """What is in a folder, by name; nothing when there is no such folder."""
        ...

    def read_text(self, path: str) -> str: ...
    def read_bytes(self, path: str) -> bytes: ...
    def write_text(self, path: str, text: str) -> None:
        """Writes a file whole or not at all, and the folders above it."""
        ...

    def rename(self, old: str, new: str) -> None: ...
    def delete(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it; nothing when there is none."""
        ...

    def make_folder(self, path: str) -> None: ...
    def remove(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it; nothing when there is none."""
        ...


class LocalStorage:
    """The disk of this machine."""

    def exists(self, path: str) -> bool:
        try:
            return any(_matches_something(to_local(one)) for one in braces_expanded(path))
        except (OSError, ValueError):
            return False  # no file can have such a name

    def is_file(self, path: str) -> bool:
        return to_local(path).is_file()

    def entries(self, folder: str) -> list[Entry]:
        local = to_local(folder)
        if not local.is_dir():
            return []
        return sorted(_entries(local), key=lambda entry: entry.name)

    def read_text(self, path: str) -> str:
        return to_local(path).read_text(encoding="utf-8")

    def read_bytes(self, path: str) -> bytes:
        return to_local(path).read_bytes()

    def write_text(self, path: str, text: str) -> None:
        local = to_local(path)
        local.parent.mkdir(parents=True, exist_ok=True)
        draft = local.with_name(f".{local.name}.{os.getpid()}.tmp")
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            # Hadoop keeps sums of files that it wrote, and would take the new one for broken.
            local.with_name(f".{local.name}.crc").unlink(missing_ok=True)
            draft.replace(local)
        finally:
            draft.unlink(missing_ok=True)

    def rename(self, old: str, new: str) -> None:
        to_local(new).parent.mkdir(parents=True, exist_ok=True)
        to_local(old).rename(to_local(new))

    def delete(self, path: str) -> None:
        local = to_local(path)
        if local.is_dir() and not local.is_symlink():
            shutil.rmtree(local)
        else:
            local.unlink(missing_ok=True)

    def make_folder(self, path: str) -> None:
        to_local(path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        local = to_local(path)
        if local.is_dir() and not local.is_symlink():
            shutil.rmtree(local)
        else:
            local.unlink(missing_ok=True)


def _matches_something(path: Path) -> bool:
    if not has_glob(str(path)):
        return path.exists()
    return next(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))), None) is not None


def _entries(folder: Path) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        for item in found:
            try:
                stat = item.stat()
            except FileNotFoundError:
                continue  # gone since the folder was read
            yield Entry(item.name, item.path, item.is_dir(), stat.st_size, stat.st_mtime_ns // 1_000_000)


def join(folder: str, *names: str) -> str:
    return "/".join((folder.rstrip("/"), *names))
