"""`${NAME}` and `${NAME:-default}`: kept as text in the model, resolved only by the engine, masked in every output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_REFERENCE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_REFERENCE_OR_ESCAPE = re.compile(rf"{_REFERENCE.pattern}|\$\$\{{")
_SECRET_NAME = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|PASS$|_PWD$|SECRET|TOKEN|APIKEY|_KEY$|PRIVATE|CREDENTIAL|JAAS", re.IGNORECASE
)
_LOGIN = re.compile(r"(://[^/:@\s]*:)(?!\$\{)[^/@\s]+@")
_PASSWORD_IN_URL = re.compile(r"([?&]password=)(?!\$\{)[^&\s\"']+", re.IGNORECASE)
_SECRET_IN_LINE = re.compile(
    r"""([\w.-]*(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key|credential|jaas)[\w.-]*
        ["']?\s*[:=]\s*)
        ("(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?|\$\{[^}]*\}|[^\s,\[\]{}"'|>][^,\]}]*)""",
    re.IGNORECASE | re.VERBOSE,
)
MASK = "••••••"


def is_secret(name: str) -> bool:
    """Does the name of a key or a variable sound like that of a secret?"""
    return _SECRET_NAME.search(name) is not None


class Unset(LookupError):
    """A reference without a default names a variable that is not set."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


def has_reference(value: object) -> bool:
    return isinstance(value, str) and _REFERENCE.search(value) is not None


def names(value: Any) -> set[str]:
    """Every variable that the strings inside `value` refer to."""
    if isinstance(value, str):
        return {match[1] for match in _REFERENCE.finditer(value)}
    if isinstance(value, Mapping):
        return set().union(*(names(item) for item in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(names(item) for item in value))
    return set()


def resolve(value: Any, environ: Mapping[str, str]) -> Any:
    """`value` with every reference inside replaced; `$${` stands for a literal `${`. Raises Unset."""

    def lookup(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if environ.get(name):
            return environ[name]
        if default is None:
            raise Unset(name)
        return default

    return _replace(value, lookup)


def without_secrets(name: str, value: Any) -> Any:
    """The value of a key as people may see it: a secret is masked, also inside a URL, and a reference is not."""
    if isinstance(value, str):
        if is_secret(name) and not _REFERENCE.fullmatch(value):
            return MASK
        return _LOGIN.sub(rf"\1{MASK}@", value)
    if isinstance(value, Mapping):
        return {key: without_secrets(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_secrets(name, item) for item in value)
    return value


def line_without_secrets(line: str) -> str:
    """A line of a user's file as people may see it: what is written for a key that sounds secret is masked."""
    masked = _LOGIN.sub(rf"\1{MASK}@", line)
    masked = _PASSWORD_IN_URL.sub(rf"\1{MASK}", masked)
    return _SECRET_IN_LINE.sub(
        lambda found: found[0] if _REFERENCE.search(found[2]) or MASK in found[2] else f"{found[1]}{MASK}", masked
    )


def sketch(text: str) -> str:
    """SQL with defaults, or a NULL, in place of its references: enough to parse it without knowing any value."""
    return _REFERENCE.sub(lambda match: match[2] if match[2] else "NULL", text)


def _replace(value: Any, lookup: Callable[[re.Match[str]], str]) -> Any:
    if isinstance(value, str):
        # In one pass: what a variable holds is taken as it is, whatever it looks like.
        return _REFERENCE_OR_ESCAPE.sub(lambda found: lookup(found) if found[1] else "${", value)
    if isinstance(value, Mapping):
        return {key: _replace(item, lookup) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace(item, lookup) for item in value]
    return value


class Mask:
    """Hides the values of secrets in any text. A name is secret when it is declared so, or sounds like it."""

    def __init__(self, declared: Iterable[str], environ: Mapping[str, str]) -> None:
        declared = set(declared)
        values = {value for name, value in environ.items() if value and (name in declared or is_secret(name))}
        # Inside JSON and Kafka's login, a secret with quotes is written with escapes.
        values |= {json.dumps(value, ensure_ascii=False)[1:-1] for value in values}
        # Longest first, so that one secret inside another leaves no rest. A very short value is hidden only where it
        # stands alone: replacing every `a` would hide nothing and spoil everything.
        patterns = [
            re.escape(value) if len(value) >= 4 else rf"(?<!\w){re.escape(value)}(?!\w)"
            for value in sorted(values, key=len, reverse=True)
        ]
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._pattern else text

    def deeply(self, value: Any) -> Any:
        """The same for every string inside a JSON-like value."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {key: self.deeply(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.deeply(item) for item in value]
        return value
