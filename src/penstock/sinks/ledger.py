"""Durable notes of which batch was done under which name, for sinks that keep no ledger of their own."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Protocol

from penstock.problems import Fault
from penstock.storage.storage import Storage, join

NONE_YET = -1
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")


class Ledger(Protocol):
    """Remembers, by name, the newest batch that is done."""

    def done(self, name: str) -> int:
        """The newest batch that was noted under the name; -1 if there is none."""
        ...

    def note(self, name: str, number: int) -> None:
        """Returns when the note is safe. What it says replaces what was noted before under the name."""
        ...


class FileLedger:
    """A ledger of small files in a folder, one for each name. A note is written whole or not at all.

    A note belongs to one query id: in a copied checkpoint, which has a new one, nothing is done yet.
    """

    def __init__(self, storage: Storage, folder: str, query_id: str) -> None:
        self._storage, self._folder, self._query_id = storage, folder, query_id

    def done(self, name: str) -> int:
        path = self._path(name)
        try:
            if not self._storage.is_file(path):
                return NONE_YET
            kept = json.loads(self._storage.read_text(path))
            return int(kept["batch"]) if kept["query_id"] == self._query_id else NONE_YET
        except OSError as error:
            raise _unkept(path, error) from None
        except (ValueError, LookupError, TypeError):
            raise Fault("LEDGER001", f"`{path}` is no note of a batch",
                        "restore the file from a backup; or delete it: then the sink may get its last batch twice"
                        ) from None  # fmt: skip

    def note(self, name: str, number: int) -> None:
        path = self._path(name)
        text = json.dumps({"query_id": self._query_id, "name": name, "batch": number})
        try:
            self._storage.write_text(path, text)
        except OSError as error:
            raise _unkept(path, error) from None

    def _path(self, name: str) -> str:
        plain = _NOT_PLAIN.sub("-", name)[:80]
        # Names that no file can have, or that differ in a strange character alone, get files of their own.
        mark = "" if plain == name else f"-{sha256(name.encode()).hexdigest()[:12]}"
        return join(self._folder, f"{plain}{mark}.json")


class InMemory:
    """A ledger that is gone with the process, for sinks whose content is gone with it too."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}

    def done(self, name: str) -> int:
        return self._done.get(name, NONE_YET)

    def note(self, name: str, number: int) -> None:
        self._done[name] = number


def is_done(ledger: Ledger, name: str, number: int) -> bool:
    """Was this very batch done under the name? Raises Fault if the ledger is ahead of the query."""
    return is_noted(ledger.done(name), number, f"the ledger of `{name}`")


def is_noted(newest: int, number: int, ledger: str) -> bool:
    """Is the batch noted in a ledger whose newest batch is `newest`? Raises Fault if the ledger is ahead.

    Batches are written one after the other, so a ledger never knows a batch beyond the one that is under way. One that
    does belongs to another checkpoint: all batches up to its own would be taken for written, and never reach the sink.
    """
    if newest > number:
        raise Fault(
            "LEDGER001", f"{ledger} has batch {newest}, and the query is only at batch {number}: batches {number} to"
            f" {newest} would not be written",
            "restore the checkpoint and the sink from one backup; or delete that entry of the ledger, if the sink lacks"
            " the rows of these batches",
        )  # fmt: skip
    return newest == number


def _unkept(path: str, error: OSError) -> Fault:
    return Fault("LEDGER001", f"the note `{path}` cannot be read or written: {error.strerror or error}",
                 "give this user the right to write there, or free some space; then run again")  # fmt: skip
