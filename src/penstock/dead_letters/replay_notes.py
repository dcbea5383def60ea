"""What was put back of a pipeline's dead letters: small notes beside its checkpoints, so that it is put back once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from penstock.problems import Fault
from penstock.storage.storage import Storage, join

FOLDER = "replays"
_KEPT = "DEADLETTER007"


@dataclass(frozen=True)
class ReplayNote:
    """One lot of letters. It is noted before anything of it is sent, and once more when it is known what arrived."""

    name: str
    at: str
    ids: tuple[str, ...]
    """The letters that were to be sent."""
    source: str
    """The source that they went back to."""
    topic: str | None = None
    ends: dict[str, int] = field(default_factory=dict)
    """By partition, where the topic ended before anything was sent: behind it, what arrived can be found."""
    file: str | None = None
    sent: tuple[str, ...] | None = None
    """The letters that arrived; None while that is not known."""


class ReplayNotes:
    """The notes of one pipeline, under `<storage>/replays/<pipeline>`. Each is written whole or not at all."""

    def __init__(self, storage: Storage, root: str, pipeline: str) -> None:
        self._storage, self._folder = storage, join(root, FOLDER, pipeline)

    def all(self) -> list[ReplayNote]:
        """Oldest first. Raises Fault."""
        try:
            entries = [entry for entry in self._storage.entries(self._folder) if entry.name.endswith(".json")]
            return [self._read(entry.path) for entry in entries if not entry.name.startswith(".")]
        except OSError as error:
            raise self._unkept(error) from None

    def begin(self, ids: Iterable[str], source: str, **to: Any) -> ReplayNote:
        """A note of what is about to be sent, safe before it returns."""
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%S%f}-{uuid4().hex[:8]}"
        return self._write(ReplayNote(name, now.isoformat(timespec="seconds"), tuple(ids), source, **to))

    def end(self, note: ReplayNote, sent: Iterable[str]) -> ReplayNote:
        """The same note, with what arrived."""
        return self._write(replace(note, sent=tuple(sent)))

    def _write(self, note: ReplayNote) -> ReplayNote:
        try:
            self._storage.write_text(join(self._folder, f"{note.name}.json"), json.dumps(asdict(note)) + "\n")
        except OSError as error:
            raise self._unkept(error) from None
        return note

    def _read(self, path: str) -> ReplayNote:
        try:
            kept = json.loads(self._storage.read_text(path))
            sent = kept.pop("sent")
            return ReplayNote(**kept | {"ids": tuple(kept["ids"]), "sent": sent if sent is None else tuple(sent)})
        except (ValueError, TypeError, LookupError):
            raise Fault(_KEPT, f"`{path}` is no note of a replay",
                        "put it back from a backup; or delete it: then its letters may be sent twice"
                        ) from None  # fmt: skip

    def _unkept(self, error: OSError) -> Fault:
        return Fault(_KEPT, f"what was replayed cannot be noted in `{self._folder}`: {error.strerror or error}",
                     "give this user the right to read and write there, or free some space")  # fmt: skip


def replayed(notes: Iterable[ReplayNote]) -> dict[str, str]:
    """By id, when a letter was put back."""
    return {id_: note.at for note in notes for id_ in note.sent or ()}
