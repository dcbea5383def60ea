"""A checkpoint against itself: are all files that the next start needs there, whole, and do they fit each other?

Pure reading, without a JVM where the storage is local. `cheap` is for every start: it reads the newest few files.
`deep` reads all that a start would read, and more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.checkpoint import seals
from penstock.checkpoint.damage import Damage, Kind, reset_command, ways_out
from penstock.checkpoint.looked import Look, Unreadable
from penstock.checkpoint.verify_sources import source_logs
from penstock.checkpoint.verify_state import state
from penstock.storage.storage import Storage

_HEAD = 2
"""The lines of an offsets file before the offsets: its version, and the settings of the batch."""
_NEWEST = 2


def cheap(
    storage: Storage, checkpoint: str, *, name: str, identity: str | None = None, sources: int | None = None
) -> list[Damage]:
    """What can be found by a few files: for every start. `name` is `pipeline.query`. Raises OSError."""
    return _verified(Look(storage, checkpoint), name, identity, sources, deep=False)


def deep(
    storage: Storage, checkpoint: str, *, name: str, identity: str | None = None, sources: int | None = None
) -> list[Damage]:
    """All that can be found. Raises OSError."""
    return _verified(Look(storage, checkpoint), name, identity, sources, deep=True)


def heal(storage: Storage, found: Iterable[Damage]) -> None:
    """Removes what is left over, so that Spark can write its files. Raises OSError."""
    for damage in found:
        if damage.kind == "left_over":
            storage.delete(damage.file)


def _verified(look: Look, name: str, identity: str | None, sources: int | None, *, deep: bool) -> list[Damage]:
    out = ways_out(name, look.root)
    found = list(_identity(look, identity, out))
    offsets, commits = _Log(look, "offsets", out, deep), _Log(look, "commits", out, deep)
    found += [*offsets.damages, *commits.damages]
    found += _together(offsets, commits, name, out, sources)
    found += source_logs(look, offsets.newest_offsets, out, deep=deep)
    found += state(look, _version(offsets, commits), _unique_ids(commits), out, deep=deep)
    found += _notes(look, out)
    found += seals.broken(look, offsets.newest, out, every=deep or look.is_local)
    return _without_repeats(found)


def _without_repeats(found: list[Damage]) -> list[Damage]:
    """One damage for each file: the first that was found, for later ones follow from it."""
    kept: dict[str, Damage] = {}
    for damage in found:
        known = kept.get(damage.file)
        if known is None or (known.heals and not damage.heals):
            kept[damage.file] = damage
    return list(kept.values())


def _identity(look: Look, identity: str | None, out: str) -> Iterator[Damage]:
    if not look.is_file("metadata"):
        yield Damage("identity", look.path("metadata"), "is missing", out)
        return
    try:
        said = json.loads(look.read("metadata"))["id"]
    except (Unreadable, ValueError, LookupError, TypeError):
        yield Damage("identity", look.path("metadata"), "holds no identity", out)
        return
    if identity is not None and said != identity:
        yield Damage("identity", look.path("metadata"), f"has the identity {said}, and the manifest {identity}", out)


def _notes(look: Look, out: str) -> Iterator[Damage]:
    """The notes of sinks that have no ledger of their own. One that is gone lets a batch be written again."""
    for name, entry in look.entries("ledger").items():
        if entry.is_folder or name.startswith(".") or not name.endswith(".json"):
            continue
        try:
            said = json.loads(look.read("ledger", name))
            if not (isinstance(said["batch"], int) and isinstance(said["query_id"], str)):
                raise ValueError
        except (Unreadable, ValueError, LookupError, TypeError):
            fix = f"{out}; or delete the file: the last batch is then possibly written twice"
            yield Damage("ledger", look.path("ledger", name), "is not a note of a batch", fix)


class _Log:
    """`offsets` or `commits`: one file for each batch."""

    def __init__(self, look: Look, name: str, out: str, deep: bool) -> None:
        self.look, self.name, self.out = look, name, out
        entries = look.entries(name)
        self.batches = sorted(int(one) for one in entries if one.isdigit())
        self.damages: list[Damage] = []
        self.contents: dict[int, list[Any]] = {}
        """By batch that was read: the lines after the version, as JSON; None for an empty one."""
        for batch in self.batches if deep else self.batches[-_NEWEST:]:
            self._read(batch)
        for entry in entries:
            number = entry.removeprefix(".").removesuffix(".crc")
            if entry.startswith(".") and entry.endswith(".crc") and number.isdigit() and number not in entries:
                fix = "delete the file; `penstock run` does it by itself"
                self.damages.append(
                    Damage("left_over", look.path(name, entry), "is a sum without its file", fix, heals=True)
                )

    @property
    def newest(self) -> int | None:
        return self.batches[-1] if self.batches else None

    @property
    def newest_offsets(self) -> list[Any]:
        """What the newest batch says, after its settings."""
        return self.contents.get(self.batches[-1], [])[_HEAD - 1 :] if self.batches else []

    def file(self, batch: int) -> str:
        return self.look.path(self.name, str(batch))

    def _read(self, batch: int) -> None:
        try:
            text = self.look.read(self.name, str(batch))
            self.contents[batch] = _parsed(text)
        except Unreadable as error:
            self._add(error.kind, batch, str(error))
        except ValueError as error:
            self._add("unreadable", batch, str(error))

    def _add(self, kind: Kind, batch: int, what: str) -> None:
        # Spark asks for the newest two batches; older ones lie there for readers of old state alone.
        heals = batch not in self.batches[-_NEWEST:]
        self.damages.append(Damage(kind, self.file(batch), what, self.out, heals))


def _parsed(text: str) -> list[Any]:
    """Raises ValueError."""
    version, *lines = text.split("\n")
    if not (version.startswith("v") and version[1:].isdigit()):
        raise ValueError("does not begin with a version")
    if not lines or lines == [""]:
        raise ValueError("ends after its version")
    try:
        # An empty line is what Continuous Processing leaves of the settings; `-` is a source without an offset.
        return [None if line in ("", "-") else json.loads(line) for line in lines]
    except ValueError:
        raise ValueError("holds a line that is not JSON") from None


def _together(offsets: _Log, commits: _Log, name: str, out: str, sources: int | None) -> Iterator[Damage]:
    """The two logs beside each other, and the newest batches beside their neighbours."""
    newest, committed = offsets.newest, commits.newest
    if newest is None:
        if committed is not None:
            yield Damage("missing", offsets.file(committed), "is missing, and the batch is committed", out)
        return
    if committed is not None and committed > newest:
        yield Damage("missing", offsets.file(committed), "is missing, and the batch is committed", out)
        return
    for batch in commits.batches[-_NEWEST:]:
        # Asynchronous progress leaves gaps, and never a commit whose offsets are not written.
        if offsets.batches[0] <= batch and batch not in offsets.batches:
            yield Damage("missing", offsets.file(batch), "is missing, and the batch is committed", out)
    yield from _beside_the_one_before(offsets, name, out)
    said = offsets.newest_offsets
    if said and sources is not None and len(said) != sources:
        what = f"has the offsets of {len(said)} sources, and the query had {sources} when it was created"
        yield Damage("contradiction", offsets.file(newest), what, out)
    if said and committed == newest and committed in commits.contents:
        yield from _watermarks(offsets, commits, committed, out)


def _beside_the_one_before(offsets: _Log, name: str, out: str) -> Iterator[Damage]:
    *_, before, newest = (None, None, *offsets.batches)
    if before is None or newest is None or not {before, newest} <= set(offsets.contents):
        return
    old, new = offsets.contents[before], offsets.contents[newest]
    if len(old) != len(new) and None not in (old[0], new[0]):
        what = f"has the offsets of {len(new) - 1} sources, and the batch before it of {len(old) - 1}"
        yield Damage("contradiction", offsets.file(newest), what, out)
    elif old == new and old[0] is not None and not (len(offsets.batches) == _NEWEST and before > 0):
        # Two files alone, the same: so a gap is closed where asynchronous progress has left one batch (gaps.py).
        what = f"is a copy of `{before}` beside it"
        fix = f"{out}; without state, the offsets can be kept: `{reset_command(name, 'offsets')}`"
        yield Damage("contradiction", offsets.file(newest), what, fix)
    else:
        for now, then in zip(new[1:], old[1:], strict=False):
            if _is_behind(now, then):
                what = f"ends before the batch `{before}` has ended"
                yield Damage("contradiction", offsets.file(newest), what, out)
                return


def _is_behind(now: Any, then: Any) -> bool:
    """Is an offset of a file source before another one? Those of other sources may be set back by a user."""
    if isinstance(now, dict) and isinstance(then, dict) and set(now) == set(then) == {"logOffset"}:
        return bool(now["logOffset"] < then["logOffset"])
    return False


def _watermarks(offsets: _Log, commits: _Log, batch: int, out: str) -> Iterator[Damage]:
    planned, done = offsets.contents[batch][0], commits.contents[batch][0]
    if isinstance(planned, dict) and isinstance(done, dict):
        before, after = planned.get("batchWatermarkMs", 0), done.get("nextBatchWatermarkMs", 0)
        if after and after < before:
            what = f"has a watermark of {after} ms, and the batch began with {before} ms"
            yield Damage("contradiction", commits.file(batch), what, out)


def _version(offsets: _Log, commits: _Log) -> int:
    """The version of the state that the next batch loads."""
    if offsets.newest is None:
        return 0
    return offsets.newest + 1 if commits.newest == offsets.newest else offsets.newest


def _unique_ids(commits: _Log) -> dict[int, dict[str, list[list[str]]]]:
    """By version of the state: for each operator and partition, the names of its files (format 2)."""
    found = {}
    for batch, said in commits.contents.items():
        if said and isinstance(said[0], dict) and said[0].get("stateUniqueIds"):
            found[batch + 1] = said[0]["stateUniqueIds"]
    return found
