"""The versions of a folder's schema, one small JSON file each: `0001.json`, `0002.json` …"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.notation.paths import is_local, to_local
from penstock.problems import Fault
from penstock.storage.storage import LocalStorage, Storage, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = re.compile(r"^(\d{4,})\.json$")
KEYS = ("schema_location",)


@dataclass(frozen=True)
class Version:
    """A schema as it was kept. Never changed once it is written: a wider one is the next version."""

    version: int
    schema: dict[str, Any]
    """As Spark's own JSON."""
    reason: str
    at: str
    files: int = 0
    """Files that were looked at for it."""
    width: int = 0
    """CSV: values in the widest line so far. Lines are parsed to that width."""
    read_as: dict[str, Any] | None = None
    """Parquet under `rescue`: the wider schema that files are read by; what the schema lacks of it is rescued."""


def storage_of(path: str, spark: SparkSession) -> Storage:
    from penstock.storage.hadoop import HadoopStorage

    return LocalStorage() if is_local(path) else HadoopStorage(spark)


def newest(storage: Storage, folder: str) -> Version | None:
    """The newest version, or None when none was kept. Raises Fault on one that cannot be read."""
    numbers = [int(found[1]) for entry in storage.entries(folder) if (found := _NAME.match(entry.name))]
    return numbered(storage, folder, max(numbers)) if numbers else None


def numbered(storage: Storage, folder: str, number: int) -> Version:
    """The version of a number. Raises Fault if it cannot be read."""
    path = join(folder, f"{number:04d}.json")
    try:
        return Version(**json.loads(storage.read_text(path)))
    except (OSError, ValueError, TypeError) as error:
        raise Fault(
            "SCHEMA006", f"the kept schema {path} cannot be read: {str(error).splitlines()[0]}",
            "put the file back, or remove the folder to have the schema inferred anew", KEYS,
        ) from None  # fmt: skip


def keep(storage: Storage, folder: str, version: Version) -> Version:
    """Writes a version, unless another query was first with that number: then theirs counts, and is given back."""
    path = join(folder, f"{version.version:04d}.json")
    text = json.dumps(asdict(version), indent=2) + "\n"
    try:
        _create(storage, path, text)
    except OSError as error:
        if isinstance(error, FileExistsError) and (theirs := newest(storage, folder)):
            return theirs
        raise Fault(
            "SCHEMA006", f"a schema cannot be kept in {folder}: {str(error).splitlines()[0]}",
            "set `schema_location` to a folder that can be written to", KEYS,
        ) from None  # fmt: skip
    return version


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _create(storage: Storage, path: str, text: str) -> None:
    """Writes a file whole, or raises FileExistsError. On object stores two writers at one moment may both succeed."""
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.draft"
    storage.write_text(draft, text)
    if not is_local(path):
        storage.rename(draft, path)
        return
    try:
        os.link(to_local(draft), to_local(path))  # unlike a rename, it never replaces
    finally:
        to_local(draft).unlink()
