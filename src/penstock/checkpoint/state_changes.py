"""Can a processor go on with the state of its checkpoint? What it declares now, against what is kept. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.facts.stored import ProcessorState, StateVariable
from penstock.problems import Severity

_WIDER = {
    "byte": ("short", "integer", "long", "float", "double"),
    "short": ("integer", "long", "float", "double"),
    "integer": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("binary",),
    "binary": ("string",),
}
"""By type, those that Avro reads it as."""
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What has changed and what to do about it."""

    code: str
    message: str
    fix: str
    keys: tuple[str, ...] = ("with",)
    severity: Severity = "error"


def state_changes(step: str, before: ProcessorState, now: ProcessorState, command: str = "") -> Iterator[Change]:
    """What Spark would refuse in the first batch, or take and lose something by. `command` begins a new checkpoint."""
    anew = f"begin a new checkpoint: {f'`{command}`' if command else f'give the step `{step}` a new name'}"
    if before.time != now.time:
        message = f"the checkpoint of `{step}` was born with `time: {before.time}`, and it is `{now.time}` now"
        yield Change("STATE004", message, f"set `time: {before.time}`, or {anew}", ("time",))
    if before.mode != now.mode:
        message = f"the checkpoint of `{step}` was born in output mode `{before.mode}`, and it is `{now.mode}` now"
        yield Change("STATE004", message, f"set `mode: {before.mode}` for the query, or {anew}", ())
    kept = {variable.name: variable for variable in before.variables}
    both = [(kept[variable.name], variable) for variable in now.variables if variable.name in kept]
    for old, new in both:
        if not same_types(old.key, new.key):
            message = f"`{step}` is grouped by ({shown(new.key)}), and its checkpoint by ({shown(old.key)})"
            yield Change("STATE003", message, f"group by the old columns, or {anew}", ("key",))
            return
    for old, new in both:
        yield from _of_variable(old, new, before.encoding, anew)


def _of_variable(old: StateVariable, new: StateVariable, encoding: str, anew: str) -> Iterator[Change]:
    rename = f"rename the variable, to begin it empty, or {anew}"
    if old.kind != new.kind:
        message = f"state `{new.name}` is a {new.kind}, and in its checkpoint it is a {old.kind}"
        yield Change("STATE002", message, f"make it a {old.kind} again, {rename}")
        return
    if old.ttl != new.ttl:
        message = f"state `{new.name}` has {_ttl(new)}, and in its checkpoint it has {_ttl(old)}"
        yield Change("STATE002", message, rename)
        return
    if old.map_key is not None and new.map_key is not None and not same_types(old.map_key, new.map_key):
        message = f"the key of state `{new.name}` is ({shown(new.map_key)}), and was ({shown(old.map_key)})"
        yield Change("STATE001", message, f"give it back its old key, {rename}")
        return
    value = new.values[-1]
    refused = [kept for kept in old.values if not _can_follow(kept, value, encoding)]
    if refused:
        message = f"state `{new.name}` has the columns ({shown(value)}), and its checkpoint ({shown(refused[-1])})"
        why = "" if encoding == "avro" else f"; the checkpoint is written in `{encoding}`, which follows no change"
        yield Change("STATE001", message + why, f"give it back its old columns, {rename}")
        return
    if encoding == "avro" and (lost := sorted(_names(old.values[-1]) - _names(value))):
        gone = ", ".join(f"`{name}`" for name in lost)
        message = f"state `{new.name}` has no column {gone} any more: what is kept in it will be dropped"
        fix = "keep the column under its old name, if what it holds is needed"
        yield Change("STATE005", message, fix, severity="warning")


def _can_follow(kept: Schema, now: Schema, encoding: str) -> bool:
    return readable(kept, now) if encoding == "avro" else same_types(kept, now)


def same_types(old: Any, new: Any) -> bool:
    """Are the types the same, whatever the columns are called?"""
    if isinstance(old, str) or isinstance(new, str):
        return bool(old == new)
    if old["type"] != new["type"]:
        return False
    match old["type"]:
        case "struct":
            pairs = zip(old["fields"], new["fields"], strict=False)
            return len(old["fields"]) == len(new["fields"]) and all(same_types(a["type"], b["type"]) for a, b in pairs)
        case "array":
            return same_types(old["elementType"], new["elementType"])
        case "map":
            return same_types(old["keyType"], new["keyType"]) and same_types(old["valueType"], new["valueType"])
    return bool(old == new)


def readable(old: Any, new: Any) -> bool:
    """Can what was written as `old` in Avro be read as `new`? Columns are found by their names."""
    if isinstance(old, str) or isinstance(new, str):
        return old == new or (isinstance(old, str) and new in _WIDER.get(old, ()))
    if old["type"] != new["type"]:
        return False
    match old["type"]:
        case "struct":
            written = {field["name"]: field for field in old["fields"]}
            return all(
                readable(written[field["name"]]["type"], field["type"])
                if field["name"] in written
                else field.get("nullable", True)
                for field in new["fields"]
            )
        case "array":
            return readable(old["elementType"], new["elementType"])
        case "map":
            return same_types(old["keyType"], new["keyType"]) and readable(old["valueType"], new["valueType"])
    return bool(old == new)


def shown(schema: Any) -> str:
    """A schema as a user writes it."""
    if isinstance(schema, str):
        return {"integer": "INT", "long": "LONG", "short": "SHORT", "byte": "BYTE"}.get(schema, schema.upper())
    match schema["type"]:
        case "struct":
            return ", ".join(f"{field['name']} {_inside(field['type'])}" for field in schema["fields"])
        case "array":
            return f"ARRAY<{_inside(schema['elementType'])}>"
        case "map":
            return f"MAP<{_inside(schema['keyType'])}, {_inside(schema['valueType'])}>"
    return str(schema["type"]).upper()


def _inside(schema: Any) -> str:
    is_struct = not isinstance(schema, str) and schema["type"] == "struct"
    return f"STRUCT<{shown(schema)}>" if is_struct else shown(schema)


def _names(schema: Schema) -> set[str]:
    return {field["name"] for field in schema["fields"]}


def _ttl(variable: StateVariable) -> str:
    return "a TTL" if variable.ttl else "no TTL"
