"""What a generation of a checkpoint was born with. Written before its first start, applied again at every resume."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.problems import Problem, UserError

_FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """Never holds a resolved value: references stay references, so no secret can stand in it."""

    pipeline: str
    query: str
    id: str
    """Spark's query id: the checkpoint's identity, fresh for each generation."""
    born: str
    penstock: str
    spark: str
    settings: Mapping[str, str]
    """Settings fixed at birth."""
    partition_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    """By module, the hash of the user's code at birth."""
    definition: Mapping[str, Any] = field(default_factory=dict)
    """The sources, steps and sink of the query, as written."""

    def to_text(self) -> str:
        return json.dumps({"format": _FORMAT} | asdict(self), indent=2) + "\n"


def from_text(text: str, file: str) -> Manifest:
    """Raises UserError when the file is no manifest that this version can read."""
    try:
        data = json.loads(text)
        if data.pop("format") != _FORMAT:
            raise ValueError("it was written by a newer Penstock")
        data["partition_columns"] = {key: tuple(value) for key, value in data["partition_columns"].items()}
        return Manifest(**data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            Problem("CHECKPOINT004", f"the manifest `{file}` cannot be read: {error}",
                    "restore the file from a backup, or use the Penstock that wrote it")
        ) from None  # fmt: skip
