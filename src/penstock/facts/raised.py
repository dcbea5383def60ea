"""Errors that Penstock itself raises inside a Spark task, and how they are recognised.

Spark reports such an error as `USER_RAISED_EXCEPTION` with the text as its one parameter; from a Python worker it is
the message of an exception. A step of the user can raise the same, with a row's value as the text. So the text begins
with a seal: random characters, new in each process, that no row can know. Only a text that is whole, sealed and
well-formed is taken as ours; nothing is ever searched.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from penstock.facts.failure import RecordAt, RefusedColumns
from penstock.facts.thrown import Thrown

Raised = Literal["bad-record", "new-columns"]
_SEAL = secrets.token_hex(16)
_CONDITION, _PARAMETER = "USER_RAISED_EXCEPTION", "errorMessage"
_PLACE = ("topic", "partition", "offset", "file")


def sealed(kind: Raised) -> str:
    """How the text of an error begins; a JSON object follows."""
    return f"penstock:{kind}:{_SEAL}:"


def unsealed(text: str) -> str:
    """A text for people, without the seal."""
    return text.replace(f":{_SEAL}:", ":")


def record_in(chain: Iterable[Thrown]) -> RecordAt | None:
    """The bad record that a query stopped at; None if it stopped for another reason."""
    told = _opened(chain, "bad-record")
    if not told or not all(isinstance(told.get(key), str) for key in ("node", "check")):
        return None
    place = tuple((key, told[key]) for key in _PLACE if isinstance(told.get(key), str | int))
    return RecordAt(told["node"], told["check"], place, _text(told.get("reason")), _text(told.get("record")))


def columns_in(chain: Iterable[Thrown]) -> RefusedColumns | None:
    """The columns that a task refused a batch for."""
    told = _opened(chain, "new-columns")
    return refused_columns(told) if told is not None else None


def refused_columns(told: Mapping[str, Any]) -> RefusedColumns | None:
    location, version, columns = told.get("location"), told.get("version"), told.get("columns")
    if not isinstance(location, str) or not isinstance(version, int) or not isinstance(columns, list | tuple):
        return None
    return RefusedColumns(location, version, tuple(map(str, columns)), _text(told.get("file")) or "")


def _opened(chain: Iterable[Thrown], kind: Raised) -> dict[str, Any] | None:
    start = sealed(kind)
    for link in chain:
        text = link.message if link.python else ""
        if link.condition == _CONDITION:
            text = link.parameters.get(_PARAMETER, "")
        if text.startswith(start):
            try:
                told = json.loads(text.removeprefix(start))
            except ValueError:
                return None
            return told if isinstance(told, dict) else None
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
