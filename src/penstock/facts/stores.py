"""What sources read and sinks write, as values that can be compared without asking anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StoreKind = Literal["folder", "table", "topic", "relation"]
"""A folder of files or of a table; a table by name; a Kafka topic; a table of a database."""


@dataclass(frozen=True)
class Store:
    """One place, as its source or sink names it: references, relative paths and names of connections included."""

    kind: StoreKind
    name: str
    at: str = ""
    """The servers or the URL that it is at, where it names them itself."""
    connection: str | None = None
    """The connection that names them otherwise."""
    provider: str = ""
    """What a folder holds: `delta`, `iceberg`, or files of another format (nothing)."""
    is_pattern: bool = False
    """Does the name stand for all topics that match it?"""


def folder_store(path: str | None, provider: str = "") -> tuple[Store, ...]:
    return (Store("folder", path, provider="" if provider not in ("delta", "iceberg") else provider),) if path else ()


def table_store(name: str | None) -> tuple[Store, ...]:
    return (Store("table", name),) if name else ()
