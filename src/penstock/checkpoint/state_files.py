"""What a checkpoint says of the state of its processors: Spark's own files → facts. No JVM is needed."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from penstock.checkpoint.read import newest_text
from penstock.facts.stored import ProcessorState, StateVariable
from penstock.problems import Problem, UserError
from penstock.query.state_store import ENCODING
from penstock.storage.storage import Storage, join

_OPERATORS = ("transformWithStateInPySparkExec", "transformWithStateInPandasExec")
_TIMES = {"NoTime": "none", "ProcessingTime": "processing_time", "EventTime": "event_time"}
_KINDS = {"ValueState": "value", "ListState": "list", "MapState": "map"}


def processor_states(storage: Storage, checkpoint: str) -> tuple[ProcessorState, ...]:
    """The state of each `process` step of a query, by the number of its operator. Empty before the first batch.

    Raises UserError if a file of the state is damaged.
    """
    operators = [entry for entry in storage.entries(join(checkpoint, "state")) if entry.name.isdigit()]
    if not operators:
        return ()
    encoding = _encoding(storage, checkpoint)
    found = (_processor_state(storage, entry.path, encoding) for entry in sorted(operators, key=lambda e: int(e.name)))
    return tuple(state for state in found if state)


def _processor_state(storage: Storage, operator: str, encoding: str) -> ProcessorState | None:
    metadata = join(operator, "_metadata", "v2")
    batches = [entry for entry in storage.entries(metadata) if entry.name.isdigit()]
    if not batches:
        return None
    newest = max(batches, key=lambda entry: int(entry.name))
    try:
        said = json.loads(storage.read_text(newest.path).partition("\n")[2])
    except ValueError as error:
        raise UserError(
            Problem("FAILURE001", f"the checkpoint file `{newest.path}` cannot be read: {error}",
                    "restore that file from a backup. Without one, move the folder of the checkpoint away: the query"
                    " then starts without state")
        ) from None  # fmt: skip
    if said["operatorInfo"]["operatorName"] not in _OPERATORS:
        return None
    properties = json.loads(said["operatorPropertiesJson"])
    schemas: dict[str, list[_Family]] = {}
    for path in said["stateStoreInfo"][0]["stateSchemaFilePaths"]:
        # Only the name: a checkpoint may have been moved since.
        file = join(operator, "_stateSchema", "default", path.rpartition("/")[2])
        for family in _families(storage.read_bytes(file)):
            schemas.setdefault(family.name, []).append(family)
    declared = {one["stateName"]: one for one in properties["stateVariables"]}
    return ProcessorState(
        _TIMES.get(properties["timeMode"], properties["timeMode"]),
        properties["outputMode"].lower(),
        tuple(_variable(said, schemas[name]) for name, said in declared.items() if said["stateVariableType"] in _KINDS),
        encoding,
    )


def _variable(said: dict[str, Any], versions: list[_Family]) -> StateVariable:
    latest, ttl = versions[-1], bool(said["ttlEnabled"])
    kind = _KINDS[said["stateVariableType"]]
    # A map's key is the grouping key and its own; a value with a TTL has the time beside it.
    values = [_field(one.value, "value") if ttl else one.value for one in versions]
    return StateVariable(
        said["stateName"],
        kind,
        _field(latest.key, "key") if kind == "map" else latest.key,
        tuple(values),
        _field(latest.key, "userKey") if kind == "map" else None,
        ttl,
    )


def _field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(field["type"] for field in schema["fields"] if field["name"] == name)
    return found


def _encoding(storage: Storage, checkpoint: str) -> str:
    text = newest_text(storage, checkpoint, "offsets")
    if text is None:
        return "unsaferow"
    # Continuous Processing leaves the second line empty. A file that is cut off is refused by Spark, by its name.
    try:
        said = json.loads("".join(text.splitlines()[1:2]) or "{}")
    except ValueError:
        return "unsaferow"
    return str(said.get("conf", {}).get(ENCODING, "unsaferow"))


class _Family:
    """A column family of a state store: one state variable, or an index over one."""

    def __init__(self, name: str, key: dict[str, Any], value: dict[str, Any]) -> None:
        self.name, self.key, self.value = name, key, value


def _families(content: bytes) -> Iterator[_Family]:
    """The families in a schema file of version 3: Java's own way to write numbers and texts."""
    stream = BytesIO(content)
    version = _text(stream)
    if version != "v3":
        return
    for _ in range(_number(stream, ">i")):
        name = _text(stream)
        _number(stream, ">h")  # the number of the key's schema
        key = json.loads(_chunks(stream))
        _number(stream, ">h")
        value = json.loads(_chunks(stream))
        _chunks(stream)  # how the key is encoded
        _chunks(stream)  # the key of a map, which is in `key` too
        yield _Family(name, key, value)


def _number(stream: BytesIO, form: str) -> int:
    return int(struct.unpack(form, stream.read(struct.calcsize(form)))[0])


def _text(stream: BytesIO) -> str:
    return stream.read(_number(stream, ">H")).decode("utf-8")


def _chunks(stream: BytesIO) -> str:
    return "".join(_text(stream) for _ in range(_number(stream, ">i")))
