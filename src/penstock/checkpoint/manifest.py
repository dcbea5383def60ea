"""What a generation of a checkpoint was created with. Written before its first start, applied again at every resume."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from penstock.facts.signature import EndPlace, Recorded, Signature, TextShape
from penstock.problems import Problem, UserError

_FORMAT = 2
_READABLE = (1, 2)


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
    """Settings that are fixed when the checkpoint is created."""
    partition_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    """By module, the hash of the user's code at creation."""
    definition: Mapping[str, Any] = field(default_factory=dict)
    """The sources, steps and sinks of the query as they were written at its last start."""
    signature: Signature | None = None
    """What the state means since the last start; None in a manifest of format 1."""
    sources: tuple[EndPlace, ...] = ()
    sinks: tuple[EndPlace, ...] = ()
    shape: TextShape | None = None

    @property
    def recorded(self) -> Recorded:
        return Recorded(self.definition, self.signature, self.sources, self.sinks, self.shape)

    def with_recorded(self, recorded: Recorded) -> Manifest:
        """The same after a start of the query as it is now."""
        return replace(self, **{one.name: getattr(recorded, one.name) for one in fields(recorded)})

    @property
    def is_started(self) -> bool:
        """False for a generation that a reset has made and that no run has used yet."""
        return bool(self.spark)

    def to_text(self) -> str:
        return json.dumps({"format": _FORMAT} | asdict(self), indent=2) + "\n"


def from_text(text: str, file: str) -> Manifest:
    """Raises UserError when the file is no manifest that this version can read."""
    try:
        data = json.loads(text)
        if data.pop("format") not in _READABLE:
            raise ValueError("it was written by a newer Penstock")
        data["partition_columns"] = {key: tuple(value) for key, value in data["partition_columns"].items()}
        if data.get("signature"):
            data["signature"] = Signature.from_json(data["signature"])
        if data.get("shape"):
            data["shape"] = TextShape.from_json(data["shape"])
        for ends in ("sources", "sinks"):
            data[ends] = tuple(EndPlace.from_json(one) for one in data.get(ends, ()))
        return Manifest(**data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            Problem("CHECKPOINT004", f"the manifest `{file}` cannot be read: {error}",
                    "restore the file from a backup, or use the Penstock that wrote it")
        ) from None  # fmt: skip
