"""YAML text → plain data and the place of every value. Safe by construction: no tags, no bombs, no surprises.

Values follow YAML 1.2: only `true` and `false` are booleans, so `clean: off` and the key `on` stay words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from penstock.problems import Problem, UserError, Where

KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the top of a document to a value."""

_MAX_BYTES = 1_000_000
_MAX_DEPTH = 50
_MAX_VALUES = 100_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A YAML document as plain data, with the place of each value and key."""

    data: Any
    file: str
    values: Mapping[KeyPath, Where] = field(default_factory=dict)
    keys: Mapping[KeyPath, Where] = field(default_factory=dict)

    def at(self, *path: str | int) -> Where:
        """The place of a value, or of the nearest thing around it that has one."""
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Where(self.file))

    def key_at(self, *path: str | int) -> Where:
        return self.keys.get(path) or self.at(*path)

    def overlaid(self, data: Any, path: KeyPath) -> Document:
        """The document with other data: its own, changed by what stands at `path`, and the places of both."""
        depth = len(path)
        values = {key[depth:]: where for key, where in self.values.items() if key[:depth] == path and key != path}
        keys = {key[depth:]: where for key, where in self.keys.items() if key[:depth] == path and key != path}
        return Document(data, self.file, {**self.values, **values}, {**self.keys, **keys})


def read_document(path: Path, name: str) -> Document:
    """The document in a file, shown to the user as `name`."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(
            Problem("SPEC001", f"`{name}` cannot be read: {error.strerror}", "name a file that exists", Where(name))
        ) from None
    if len(raw) > _MAX_BYTES:
        raise _refused(name, f"is larger than {_MAX_BYTES // 1_000_000} MB, too large for a pipeline", "split it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(name, "is not text in UTF-8", "save it as UTF-8 text") from None
    return parse(text, name)


def parse(text: str, name: str) -> Document:
    """The document in a text. Raises UserError for everything that is not plain YAML."""
    if bad := re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text):
        before = text[: bad.start()]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise _refused(name, "holds binary data", "save it as UTF-8 text", line, column)
    try:
        _guard(text, name)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise UserError(_syntax_problem(error, text, name)) from None
    except ValueError as error:  # a character or an escape that is no Unicode
        raise _refused(name, f"holds something that is not text: {error}", "save it as UTF-8 text") from None
    if root is None:
        raise UserError(Problem("SPEC002", f"`{name}` is empty", "start with `pipeline: <name>`", Where(name)))
    return _Walk(text, name).document(root)


def _guard(text: str, name: str) -> None:
    """Refuses depth and tags before anything is built from them."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise _refused(name, f"is nested deeper than {_MAX_DEPTH} levels", "flatten it", line, column)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if tag := getattr(event, "tag", None):
            raise _refused(name, f"uses the tag `{tag}`", "write plain values only, without `!` tags", line, column)


class _Walk:
    """One pass over the composed nodes."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.lines = text, text.splitlines()
        self.name = name
        self.values: dict[KeyPath, Where] = {}
        self.keys: dict[KeyPath, Where] = {}
        self.count = 0

    def document(self, root: yaml.Node) -> Document:
        data = self.value(root, (), ())
        return Document(data, self.name, self.values, self.keys)

    def value(self, node: yaml.Node, path: KeyPath, above: tuple[int, ...]) -> Any:
        self.count += 1
        start = self._start(node)
        if id(node) in above:
            raise _refused(self.name, "repeats itself through its aliases without end", "write the values out", *start)
        if self.count > _MAX_VALUES or len(above) > _MAX_DEPTH:
            what = f"has more than {_MAX_VALUES} values or {_MAX_DEPTH} levels when its aliases are written out"
            raise _refused(self.name, what, "split or flatten it", *start)
        self.values[path] = self._where(node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, (*above, id(node)))
        if isinstance(node, yaml.SequenceNode):
            inner = (*above, id(node))
            return [self.value(item, (*path, index), inner) for index, item in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, above: tuple[int, ...]) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        here = self.values[path]
        # Merged values come first, so that the places of the mapping's own values are the ones that stay.
        for key_node, value_node in sorted(node.value, key=lambda item: not _is_merge(item[0])):
            where = Where(self.name, *self._start(key_node))
            if not isinstance(key_node, yaml.ScalarNode):
                raise UserError(
                    Problem("SPEC003", "a key must be a word", "write a plain word before the colon", where)
                )
            key = key_node.value
            if _is_merge(key_node):
                merged |= self._merged(value_node, path, above)
                self.values[path] = here
                continue
            if key in own:
                first = self.keys[(*path, key)]
                raise UserError(
                    Problem(
                        "SPEC004",
                        f"the key `{key}` stands twice; the first is at line {first.line}",
                        "keep one of the two",
                        where,
                    )
                )
            self.keys[(*path, key)] = where
            own[key] = self.value(value_node, (*path, key), above)
        return merged | own

    def _merged(self, node: yaml.Node, path: KeyPath, above: tuple[int, ...]) -> dict[str, Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in reversed(parts):
            value = self.value(part, path, above)
            if not isinstance(value, dict):
                where = Where(self.name, *self._start(part))
                raise UserError(Problem("SPEC003", "`<<` takes a mapping", "point it at an anchored mapping", where))
            merged |= value
        return merged

    def _where(self, node: yaml.Node) -> Where:
        line, column = self._start(node)
        if not isinstance(node, yaml.ScalarNode):
            return Where(self.name, line, column)
        if node.style in ("|", ">"):
            return self._block_text(node.value, node.style, Where(self.name, line, column))
        quote = 1 if node.style else 0
        written = self.text[node.start_mark.index + quote : node.end_mark.index - quote]
        # Folded lines and escapes move characters, so that no place inside can be counted.
        return Where(self.name, line, column + quote, text=written == node.value)

    def _block_text(self, text: str, style: str, header: Where) -> Where:
        """The place where the text of a block begins, below its `|` or `>`."""
        if not text.strip():
            return header
        first = next(number for number in range(header.line, len(self.lines)) if self.lines[number].strip())
        content = self.lines[first]
        if style == ">":
            return Where(self.name, first + 1, len(content) - len(content.lstrip()) + 1)
        indent = len(content) - len(text.split("\n")[first - header.line])
        return Where(self.name, header.line + 1, indent + 1, text=True)

    @staticmethod
    def _start(node: yaml.Node) -> tuple[int, int]:
        return node.start_mark.line + 1, node.start_mark.column + 1


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == "<<" and not key.style


def _scalar(node: Any) -> Any:
    text: str = node.value
    if node.style:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) < 400:
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _syntax_problem(error: yaml.YAMLError, text: str, name: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.splitlines()
    shown = lines[line - 1] if line <= len(lines) else ""
    if "\t" in shown[: len(shown) - len(shown.lstrip())]:
        where = Where(name, line, shown.index("\t") + 1)
        return Problem("SPEC005", "a tab stands where YAML wants spaces", "indent with spaces", where)
    what = getattr(error, "problem", None) or "it cannot be read"
    return Problem(
        "SPEC005", f"this is not YAML: {what}", "mend the line; quote texts with `:` or `#`", Where(name, line, column)
    )


def _refused(name: str, what: str, fix: str, line: int = 1, column: int = 1) -> UserError:
    return UserError(Problem("SPEC006", f"`{name}` {what}", fix, Where(name, line, column)))
