"""The files of state that the next batch loads: the newest version of each store, and all that it is built on."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

from penstock.checkpoint.damage import Damage
from penstock.checkpoint.looked import Look, Unreadable
from penstock.checkpoint.sums import StateSum, state_sum, state_sum_fits

UniqueIds = Mapping[int, Mapping[str, list[list[str]]]]
_VERSIONED = re.compile(r"(\d+)(?:_([0-9a-f-]{36}))?\.(delta|snapshot|zip|changelog)")
_WHOLE = ("snapshot", "zip")
_MOST_STORES = 64
"""At a start no more are looked at: the others are of the same batch."""


@dataclass(frozen=True)
class _Store:
    """One state store of one partition of one operator."""

    operator: str
    partition: str
    name: str
    number: int
    """Its place among the stores of its partition."""

    @property
    def folder(self) -> tuple[str, ...]:
        parts = ("state", self.operator, self.partition)
        return parts if self.name == "default" else (*parts, self.name)


@dataclass(frozen=True)
class _File:
    """A file that holds a version of a store: all of it, or what has changed since the version before."""

    name: str
    version: int
    is_whole: bool


def state(look: Look, version: int, unique_ids: UniqueIds, out: str, *, deep: bool) -> Iterator[Damage]:
    """`version` is the one that the next batch loads; 0 if there is none yet."""
    if version == 0 or not (deep or look.is_local):
        return
    seen = 0
    for operator in sorted(name for name in look.entries("state") if name.isdigit()):
        folder = look.entries("state", operator)
        yield from _operator_files(look, operator, out, deep)
        stores = list(_stores(look, operator))
        for partition in sorted({store.partition for store in stores} - set(folder), key=int):
            yield Damage("state_missing", look.path("state", operator, partition), "is missing", out)
        for store in stores:
            seen += 1
            if store.partition in folder and (deep or seen <= _MOST_STORES):
                yield from _store(look, store, version, unique_ids, out, deep)


def _operator_files(look: Look, operator: str, out: str, deep: bool) -> Iterator[Damage]:
    home = ("state", operator, "_metadata")
    newest = max((one for one in look.entries(*home, "v2") if one.isdigit()), key=int, default=None)
    file = (*home, "v2", newest) if newest else (*home, "metadata")
    if not look.is_file(*file):
        yield Damage("state_schema", look.path(*file), "is missing", out)
        return
    try:
        text = look.read(*file)
        json.loads(text.partition("\n")[2])
    except Unreadable as error:
        yield Damage("state_schema", look.path(*file), str(error), out)
        return
    except ValueError:
        yield Damage("state_schema", look.path(*file), "is not what Spark has written", out)
        return
    yield from _schemas(look, operator, out)


def _schemas(look: Look, operator: str, out: str) -> Iterator[Damage]:
    """Spark keeps the columns of state with its first partition, or in files of their own (`process` steps)."""
    named = ("state", operator, "_stateSchema", "default")
    if look.entries(*named):
        for name, entry in look.entries(*named).items():
            if not entry.is_folder and not name.startswith("."):
                yield from _schema(look, (*named, name), out)
        return
    first = sorted({store for store in _stores(look, operator) if store.partition == "0"}, key=lambda one: one.number)
    for store in first:
        if store.partition in look.entries("state", operator):
            yield from _schema(look, (*store.folder, "_metadata", "schema"), out)


def _schema(look: Look, file: tuple[str, ...], out: str) -> Iterator[Damage]:
    if not look.is_file(*file):
        yield Damage("state_schema", look.path(*file), "is missing", out)
        return
    try:
        if look.content(*file)[2:3] != b"v":
            yield Damage("state_schema", look.path(*file), "is not what Spark has written", out)
    except Unreadable as error:
        yield Damage("state_schema", look.path(*file), str(error), out)


def _stores(look: Look, operator: str) -> Iterator[_Store]:
    """The stores that the operator's own file lists; without it, those that are there."""
    home = ("state", operator, "_metadata")
    newest = max((one for one in look.entries(*home, "v2") if one.isdigit()), key=int, default=None)
    try:
        text = look.read(*(*home, "v2", newest) if newest else (*home, "metadata"))
        infos = json.loads(text.partition("\n")[2])["stateStoreInfo"]
        for number, info in enumerate(infos):
            for partition in range(int(info["numPartitions"])):
                yield _Store(operator, str(partition), str(info["storeName"]), number)
    except (Unreadable, OSError, ValueError, LookupError, TypeError):
        for folder in (name for name in look.entries("state", operator) if name.isdigit()):
            inner = [name for name, one in look.entries("state", operator, folder).items() if one.is_folder]
            for number, name in enumerate([one for one in inner if one not in ("_metadata", "SSTs")] or ["default"]):
                yield _Store(operator, folder, name, number)


def _store(look: Look, store: _Store, version: int, unique_ids: UniqueIds, out: str, deep: bool) -> Iterator[Damage]:
    entries = look.entries(*store.folder)
    files: dict[int, list[_File]] = {}
    for name in entries:
        if found := _VERSIONED.fullmatch(name):
            file = _File(name, int(found[1]), found[3] in _WHOLE)
            expected = _unique_id(unique_ids, file.version, store)
            if found[2] is None or expected is None or found[2] == expected:
                files.setdefault(file.version, []).append(file)
    chain: list[_File] = []
    for number in range(version, 0, -1):
        there = sorted(files.get(number, []), key=lambda file: not file.is_whole)
        if not there:
            unique = _unique_id(unique_ids, number, store)
            shown = f"{number}_{unique}" if unique else str(number)
            yield Damage("state_missing", look.path(*store.folder), f"has no version {shown}", out)
            break
        chain.append(there[0])
        if there[0].is_whole:
            break
    for file in chain:
        if entries[file.name].size == 0:
            yield Damage("state_damaged", look.path(*store.folder, file.name), "is empty", out)
        elif deep:
            yield from _file(look, store, file, out)
    if deep:
        yield from _copies(look, store, [file for there in files.values() for file in there], chain, out)


def _unique_id(unique_ids: UniqueIds, version: int, store: _Store) -> str | None:
    try:
        return unique_ids[version][store.operator][int(store.partition)][store.number]
    except LookupError:
        return None


def _file(look: Look, store: _Store, file: _File, out: str) -> Iterator[Damage]:
    path = look.path(*store.folder, file.name)
    try:
        content = look.content(*store.folder, file.name)
        noted = _noted(look, store, file)
        if noted is not None and not state_sum_fits(content, noted):
            yield Damage("state_damaged", path, f"does not fit its sum in `{file.name}.crc`", out)
        elif file.name.endswith(".zip"):
            yield from _snapshot(look, store, content, path, out)
    except (Unreadable, ValueError, zipfile.BadZipFile, OSError, LookupError) as error:
        what = str(error) if isinstance(error, Unreadable) else "cannot be opened"
        yield Damage("state_damaged", path, what, out)


def _snapshot(look: Look, store: _Store, content: bytes, path: str, out: str) -> Iterator[Damage]:
    """RocksDB's own files are in the zip; its tables lie beside it, by a name and a size that the zip has."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        broken = archive.testzip()
        if broken is not None:
            yield Damage("state_damaged", path, f"holds `{broken}`, which is broken", out)
            return
        text = archive.read("metadata").decode("utf-8")
    tables = look.entries(*store.folder, "SSTs")
    for table in json.loads(text.partition("\n")[2])["sstFiles"]:
        name = table["dfsSstFileName"]
        file = look.path(*store.folder, "SSTs", name)
        if name not in tables:
            yield Damage("state_missing", file, "is missing", out)
        elif tables[name].size != table["sizeBytes"]:
            what = f"has {tables[name].size:,} bytes, and was written with {table['sizeBytes']:,}"
            yield Damage("state_damaged", file, what, out)
        else:
            try:
                content = look.content(*store.folder, "SSTs", name)
            except Unreadable as error:
                yield Damage("state_damaged", file, str(error), out)
                continue
            others = (one for one, entry in tables.items() if one != name and entry.size == tables[name].size)
            like = (one for one in others if look.storage.read_bytes(look.path(*store.folder, "SSTs", one)) == content)
            if copied := next(like, None):  # each table has an identity of its own within it
                yield Damage("state_copied", file, f"is a copy of `{copied}` beside it", out)


def _noted(look: Look, store: _Store, file: _File) -> StateSum | None:
    """Raises ValueError, Unreadable."""
    sums = f"{file.name}.crc"
    return state_sum(look.read(*store.folder, sums)) if sums in look.entries(*store.folder) else None


def _copies(look: Look, store: _Store, files: list[_File], chain: list[_File], out: str) -> Iterator[Damage]:
    """Spark notes the moment and the task with each file: two versions never have the same."""
    first: dict[StateSum, int] = {}
    needed = {file.name for file in chain}
    for file in sorted(files, key=lambda file: file.version):
        try:
            noted = _noted(look, store, file)
        except (ValueError, Unreadable):
            continue
        if noted is None:
            continue
        before = first.setdefault(noted, file.version)
        if before != file.version and file.name in needed:
            what = f"is a copy of version {before} beside it"
            yield Damage("state_copied", look.path(*store.folder, file.name), what, out)
