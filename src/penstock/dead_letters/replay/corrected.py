"""Dead letters that a user has corrected, in a file as `penstock dead-letters export` writes it."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.dead_letters.letters import ID_LENGTH, Letter
from penstock.problems import Problem, UserError, Where

Corrected = Mapping[str, list[bytes | None]]
"""By id, the bytes of the records: several if letters are alike."""


def read_corrected(file: Path) -> Corrected:
    """By id, the records of a file as `export` writes it, one for each line. Raises UserError."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(_broken(file, 1, error.strerror or str(error))) from None
    except UnicodeDecodeError:
        raise UserError(_broken(file, 1, "it is not UTF-8 text")) from None
    corrected: dict[str, list[bytes | None]] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                id_, raw = _corrected(line)
                corrected.setdefault(id_, []).append(raw)
            except (ValueError, TypeError) as error:
                problems.append(_broken(file, number, str(error)))
    if not corrected and not problems:
        problems.append(_broken(file, 1, "it holds no letters"))
    if problems:
        raise UserError(problems)
    return corrected


def _corrected(line: str) -> tuple[str, bytes | None]:
    try:
        told = json.loads(line)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(told, dict) or not isinstance(told.get("id"), str):
        raise TypeError("it is no letter: it has no `id`")
    if len(told["id"]) != ID_LENGTH:
        raise ValueError(f"`{told['id']}` is no whole id")
    if "raw" in told:
        raw = told["raw"]
        if raw is not None and not isinstance(raw, str):
            raise TypeError('`raw` is no text: the record is written as a JSON string, such as "{\\"id\\": 1}"')
        return told["id"], raw if raw is None else raw.encode("utf-8")
    if not isinstance(told.get("raw_base64"), str):
        raise TypeError("it has neither `raw` nor `raw_base64`")
    try:
        return told["id"], base64.b64decode(told["raw_base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"`raw_base64` is no base64: {error}") from None


def _broken(file: Path, line: int, why: str) -> Problem:
    return Problem("DEADLETTER004", f"`{file}` cannot be used, line {line}: {why}",
                   "write it with `penstock dead-letters export`, and change nothing but `raw`",
                   Where(str(file), line))  # fmt: skip


def require_copies(letters: Sequence[Letter], corrected: Corrected, file: Path | None) -> None:
    """Raises UserError if a letter stands in the file more often than there are letters like it."""
    there = Counter(letter.id for letter in letters)
    for id_, raws in corrected.items():
        if id_ in there and len(raws) > there[id_]:
            raise UserError(
                Problem("DEADLETTER004", f"`{file}` holds the letter `{id_[:12]}` {len(raws)} times, not {there[id_]}",
                        "keep one line for each record that is to be sent")
            )  # fmt: skip
