"""What pydantic finds wrong, said in a user's words at the user's line."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from penstock.notation.paths import shown
from penstock.notation.references import is_secret, without_secrets
from penstock.problems import Problem, UserError, Where, did_you_mean, rendered

if TYPE_CHECKING:
    from penstock.pipeline.yaml_text import KeyPath

_GIVEN = "_penstock_given"
_OURS = Path(__file__).parent


class Places(Protocol):
    """Where the keys of a spec were written."""

    def at(self, *path: str | int) -> Where: ...

    def key_at(self, *path: str | int) -> Where: ...


@dataclass(frozen=True)
class _OnePlace:
    """Python gives one place for all keys."""

    where: Where

    def at(self, *path: str | int) -> Where:
        return self.where

    def key_at(self, *path: str | int) -> Where:
        return self.where


def refusals_of(
    error: ValidationError, model: type[BaseModel], data: Any, document: Places, path: KeyPath = ()
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


def _problem(detail: ErrorDetails, model: type[BaseModel], data: Any, document: Places, base: KeyPath) -> Problem:
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
    value = repr(without_secrets(key, detail["input"]))
    it = value if len(value) <= 60 and not is_secret(key) else "it"
    return f"`{key}` has a wrong value: {it} {said}", about or "give a value of the right type"


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


def at_python(where: Where, error: ValidationError) -> UserError:
    """The same for a part that was written in Python: one place for all."""
    model, data = getattr(error, _GIVEN, (BaseModel, {}))
    return UserError(refusals_of(error, model, data, _OnePlace(where)))


def keep_given(error: ValidationError, model: type[BaseModel], data: dict[str, Any]) -> None:
    """Notes on the error what was given to which model. A notebook then shows Problems and no traceback."""
    setattr(error, _GIVEN, (model, data))
    error._render_traceback_ = lambda: rendered(at_python(_line_of_user(error), error).problems)  # type: ignore[attr-defined]


def _line_of_user(error: BaseException) -> Where:
    """The last line outside of Penstock that the error passed through."""
    trace, found = error.__traceback__, Where("")
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not Path(file).is_relative_to(_OURS) and "site-packages" not in file:
            found = Where(shown(file), trace.tb_lineno)
        trace = trace.tb_next
    return found
