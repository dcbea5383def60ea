"""What pydantic finds wrong, said in a user's words at the user's line."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from penstock.pipeline.yaml_text import Document, KeyPath
from penstock.problems import Problem, UserError, Where, did_you_mean

M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], data: Any, document: Document, path: KeyPath = ()) -> M:
    """The model built from the part of a document at `path`. Raises UserError."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UserError(problems_of(error, model, data, document, path)) from None


def require_mapping(data: Any, document: Document, path: KeyPath, noun: str) -> None:
    if not isinstance(data, dict):
        name = path[-1] if path else document.file
        raise UserError(
            Problem("SPEC009", f"`{name}` is not {noun}", f"{noun} is a mapping of keys", document.at(*path))
        )


def part(data: Any, document: Document, path: KeyPath, known: dict[str, type[M]], noun: str) -> M:
    """The part that `type` chooses among those known. Raises UserError."""
    require_mapping(data, document, path, f"a {noun}")
    chosen = data.get("type")
    types = ", ".join(known)
    if chosen is None:
        raise UserError(missing_key("type", f"add `type:`, one of: {types}", data, document, path))
    if not isinstance(chosen, str) or chosen not in known:
        message = f"there is no {noun} of type `{chosen}`{did_you_mean(str(chosen), known)}"
        raise UserError(Problem("SPEC010", message, f"use one of: {types}", document.at(*path, "type")))
    return validated(known[chosen], data, document, path)


def problems_of(
    error: ValidationError, model: type[BaseModel], data: Any, document: Document, path: KeyPath = ()
) -> tuple[Problem, ...]:
    details = error.errors(include_url=False)
    problems = [(detail, _problem(detail, model, data, document, path)) for detail in details]
    # A misspelled key is one mistake, although pydantic also misses the key that was meant.
    meant = {
        (*detail["loc"][:-1], near)
        for detail in details
        if detail["type"] == "extra_forbidden"
        for near in get_close_matches(str(detail["loc"][-1]), keys_of(model, detail["loc"][:-1], data), n=1)
    }
    return tuple(problem for detail, problem in problems if detail["type"] != "missing" or detail["loc"] not in meant)


def _problem(detail: ErrorDetails, model: type[BaseModel], data: Any, document: Document, base: KeyPath) -> Problem:
    path = (*base, *_keys_in(data, detail["loc"]))
    key = str(detail["loc"][-1]) if detail["loc"] else ""
    match detail["type"]:
        case "extra_forbidden" if detail["input"] is None and " " in key:
            message = f"`{key}` stands alone: inside `{{ }}` a comma ends the value before it"
            return Problem(
                "SPEC005",
                message,
                "quote the whole text, or write it below as a block with `|`",
                document.key_at(*path),
            )
        case "extra_forbidden":
            message, fix = unknown_key(key, keys_of(model, detail["loc"][:-1], data))
            return Problem("SPEC007", message, fix, document.key_at(*path))
        case "missing":
            about = description_of(model, detail["loc"], data)
            return Problem("SPEC008", f"`{key}` is missing", about or f"add `{key}`", document.at(*path))
        case _:
            return Problem("SPEC009", *_wrong_value(detail, model, data), document.at(*path))


def missing_key(key: str, fix: str, data: dict[str, Any], document: Document, path: KeyPath) -> Problem:
    """A key that must be there is not, or is misspelled."""
    for near in get_close_matches(key, data, n=1):
        return Problem("SPEC007", *unknown_key(near, [key]), document.key_at(*path, near))
    return Problem("SPEC008", f"`{key}` is missing", fix, document.at(*path))


def unknown_key(key: str, known: list[str]) -> tuple[str, str]:
    near = get_close_matches(key, known, n=1)
    fix = f"write `{near[0]}`" if near else f"use one of: {', '.join(known)}"
    return f"unknown key `{key}`{did_you_mean(key, known)}", fix


def _wrong_value(detail: ErrorDetails, model: type[BaseModel], data: Any) -> tuple[str, str]:
    said = detail["msg"].removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    key = next((str(part) for part in reversed(detail["loc"]) if isinstance(part, str)), "")
    about = description_of(model, detail["loc"], data)
    if detail["type"] in ("files", "together", "typed_option") or not key:
        return said, about or "change one of the two"
    shown = repr(detail["input"])
    shown = f": {shown} {said}" if len(shown) <= 60 else f": it {said}"
    return f"`{key}` has a wrong value{shown}", about or "give a value of the right type"


def _keys_in(data: Any, loc: tuple[str | int, ...]) -> KeyPath:
    """The part of an error's location that is in the data: pydantic also names the members of its unions."""
    found: list[str | int] = []
    for part in loc:
        if isinstance(data, dict) and part in data:
            data = data[str(part)]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            continue
        found.append(part)
    return tuple(found)


def _model_at(model: type[BaseModel], loc: tuple[str | int, ...], data: Any) -> type[BaseModel] | None:
    """The nested model that a location is in."""
    current: type[BaseModel] | None = model
    for part in loc:
        if current is None:
            return None
        field = next((f for n, f in current.model_fields.items() if part in (n, f.alias)), None)
        if field is None:
            continue  # the tag of a union: the candidates below were found with the field before it
        value = data.get(part) if isinstance(data, dict) else None
        data = value
        wanted = value.get("type") if isinstance(value, dict) else None
        candidates = _models_in(field.annotation)
        tagged = [m for m in candidates if "type" in m.model_fields and m.model_fields["type"].default == wanted]
        current = next(iter(tagged or candidates), None)
    return current


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in getattr(annotation, "__args__", ()) for found in _models_in(inner)]


def keys_of(model: type[BaseModel], loc: tuple[str | int, ...], data: Any) -> list[str]:
    found = _model_at(model, loc, data)
    return [field.alias or name for name, field in found.model_fields.items()] if found else []


def description_of(model: type[BaseModel], loc: tuple[str | int, ...], data: Any) -> str:
    """What a field is for, as a sentence for a fix."""
    key = next((part for part in reversed(loc) if isinstance(part, str)), None)
    if key is None:
        return ""
    found = _model_at(model, loc[: len(loc) - 1 - loc[::-1].index(key)], data)
    field = next((f for n, f in found.model_fields.items() if key in (n, f.alias)), None) if found else None
    if field is None or not field.description:
        return ""
    return f"`{key}`: {field.description.rstrip('.')}"


def at_python(where: Where, error: ValidationError, model_name: str) -> UserError:
    """The same for a part that was written in Python: one place for all."""
    problems = [
        Problem(
            "SPEC009",
            f"{model_name}: {'.'.join(map(str, detail['loc']))} {detail['msg'].removeprefix('Value error, ')}".strip(),
            f"see the keys of {model_name} in the reference",
            where,
        )
        for detail in error.errors(include_url=False)
    ]
    return UserError(problems)
