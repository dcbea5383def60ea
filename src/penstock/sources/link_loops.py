"""Links in a folder through which Spark would find a file more than once: to a folder above, or to one folder twice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.notation.paths import braces_expanded, has_glob, is_local, to_local
from penstock.problems import Fault


@dataclass(frozen=True)
class Repeat:
    """A folder that is found a second time, and the link that leads to it."""

    link: str
    target: str
    other: str | None = None
    """The first way to the same folder; None where the link leads back to a folder above it."""

    @property
    def fault(self) -> Fault:
        if self.other is None:
            message = (
                f"`{self.link}` is a link to `{self.target}`, a folder above it: Spark would follow it again and"
                " again, and read each file up to 41 times"
            )
        else:
            message = (
                f"the link `{self.link}` leads to the files of `{self.target}`, and so does `{self.other}`: Spark would"
                " read each of them twice"
            )
        fix = f"remove the link: `rm {self.link}`; or leave out `recursive_file_lookup`"
        return Fault("FILES013", message, fix, ("recursive_file_lookup",))


def require_none(path: str) -> None:
    """Raises Fault if Spark would find a file twice below a local folder, or below what a glob matches."""
    if not is_local(path):
        return
    roots = [folder for one in braces_expanded(path) for folder in _matches(to_local(one))]
    for found in repeats_in(roots):
        raise found.fault


def _matches(path: Path) -> Iterable[Path]:
    return Path(path.anchor).glob(str(path.relative_to(path.anchor))) if has_glob(str(path)) else [path]


@dataclass(frozen=True)
class _Folder:
    path: str
    above: tuple[str, ...]
    """The real paths of the folders on the way to it, and its own."""
    link: str | None
    """The last link on the way to it."""


def repeats_in(roots: Iterable[Path]) -> Iterator[Repeat]:
    """Each folder below the roots that is found twice by way of a link. Folders only are looked at."""
    seen: dict[str, _Folder] = {}
    for root in roots:
        start = os.path.realpath(root)
        waiting = [_Folder(str(root), (start,), str(root) if root.is_symlink() else None)]
        while waiting:
            folder = waiting.pop()
            real = folder.above[-1]
            if (first := seen.get(real)) is not None:
                if folder.link is not None:
                    yield Repeat(folder.link, real, first.path)
                elif first.link is not None:
                    yield Repeat(first.link, real, folder.path)
                continue
            seen[real] = folder
            for entry in _folders(folder.path):
                link = entry.path if entry.is_symlink() else folder.link
                below = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(real, entry.name)  # noqa: PTH118 - texts: there may be many
                if below in folder.above or Path(start).is_relative_to(below):
                    yield Repeat(entry.path, below)
                else:
                    waiting.append(_Folder(entry.path, (*folder.above, below), link))


def _folders(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if _is_folder(entry):
                    yield entry
    except OSError:  # not there, no folder, or not ours to read: Spark says so
        return


def _is_folder(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or (entry.name.startswith("_") and "=" not in entry.name):
        return False  # Spark does not look into it
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
