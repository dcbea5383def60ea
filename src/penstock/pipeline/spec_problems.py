"""Parts of a YAML document as models, and what is wrong with them at its place in the document."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from penstock.pipeline.yaml_text import Document, KeyPath
from penstock.problems import Problem, UserError, did_you_mean
from penstock.spec_refusals import refusals_of, unknown_key

M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], data: Any, document: Document, path: KeyPath = ()) -> M:
    """The model built from the part of a document at `path`. Raises UserError."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UserError(refusals_of(error, model, data, document, path)) from None


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


def missing_key(key: str, fix: str, data: dict[str, Any], document: Document, path: KeyPath) -> Problem:
    """A key that must be there is not, or is misspelled."""
    for near in get_close_matches(key, data, n=1):
        return Problem("SPEC007", *unknown_key(near, [key]), document.key_at(*path, near))
    return Problem("SPEC008", f"`{key}` is missing", fix, document.at(*path))
