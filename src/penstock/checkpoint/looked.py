"""A checkpoint's folder while it is looked at: each folder is listed once, each file is compared with its sum."""

from __future__ import annotations

from penstock.checkpoint.damage import Kind
from penstock.checkpoint.sums import hadoop_sum_file, hadoop_sum_fits
from penstock.notation.paths import is_local
from penstock.storage.storage import Entry, Storage, join


class Unreadable(Exception):
    """A file that is there and is not what was written."""

    def __init__(self, kind: Kind, what: str) -> None:
        super().__init__(what)
        self.kind = kind


class Look:
    """Paths are relative to the checkpoint, in parts. Raises OSError."""

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage, self.root = storage, root
        self.is_local = is_local(root)
        self._listed: dict[str, dict[str, Entry]] = {}

    def path(self, *parts: str) -> str:
        return join(self.root, *parts) if parts else self.root

    def entries(self, *parts: str) -> dict[str, Entry]:
        folder = self.path(*parts)
        if folder not in self._listed:
            self._listed[folder] = {entry.name: entry for entry in self.storage.entries(folder)}
        return self._listed[folder]

    def is_file(self, *parts: str) -> bool:
        return self.storage.is_file(self.path(*parts))

    def content(self, *parts: str) -> bytes:
        """Raises Unreadable when the file is not the one that Hadoop has summed up."""
        *folder, name = parts
        entries = self.entries(*folder)
        content = self.storage.read_bytes(self.path(*parts))
        if not content:
            raise Unreadable("unreadable", "is empty")
        sums = hadoop_sum_file(name)
        if sums in entries and not hadoop_sum_fits(content, self.storage.read_bytes(self.path(*folder, sums))):
            raise Unreadable("altered", f"does not fit its sum in `{sums}`")
        return content

    def read(self, *parts: str) -> str:
        """Raises Unreadable."""
        try:
            # Kafka's source writes a zero byte first, for the readers of very old versions.
            return self.content(*parts).removeprefix(b"\0").decode("utf-8")
        except UnicodeDecodeError:
            raise Unreadable("unreadable", "is not text") from None
