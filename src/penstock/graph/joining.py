"""Is what a sink writes what a source reads? Decided by names, paths and addresses alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import normpath
from urllib.parse import urlsplit

from penstock.connections.postgres_names import TableName
from penstock.facts.stores import Store, StoreKind
from penstock.lakes.tables import parts_of
from penstock.notation import references
from penstock.notation.paths import absolute, has_glob, is_url, is_within, matches, to_local
from penstock.pipeline.project import Project

_PARTITION = re.compile(r"^[^=/]+=.*$")
_SPARK_CATALOG = "spark_catalog"
_POSTGRES = ("postgresql", "postgres")


@dataclass(frozen=True)
class StorePlace:
    """A store with its references resolved where they can be, spelled in one way only."""

    kind: StoreKind
    key: tuple[str, ...]
    """A path, the parts of a table's name, or a topic."""
    shown: str
    at: frozenset[str] = frozenset()
    """Each server that leads there."""
    provider: str = ""
    is_pattern: bool = False
    is_recursive: bool = False


def place_of(store: Store, project: Project, environ: Mapping[str, str], *, recursive: bool = False) -> StorePlace:
    """A reference that is not set stays as it is written: two that are spelled alike are the same."""
    name = _resolved(store.name, environ)
    match store.kind:
        case "folder":
            path = _normal(absolute(name, project.root))
            shown = store.name.rstrip("/") or store.name
            return StorePlace("folder", (path,), shown, provider=store.provider, is_recursive=recursive)
        case "table":
            return StorePlace("table", _table(name, project), store.name)
        case "topic":
            at = frozenset(_server(one) for one in _address(store, project, environ, "servers").split(",") if one)
            return StorePlace("topic", (name,), store.name, at, is_pattern=store.is_pattern)
        case "relation":
            at = frozenset({_database(_address(store, project, environ, "url"))})
            return StorePlace("relation", _relation(name), store.name, at)


def feeds(written: StorePlace, read: StorePlace) -> bool:
    """Would a reader of one place see what is written to the other?"""
    if written.kind != read.kind:
        return False
    match written.kind:
        case "folder":
            return _folder_feeds(written, read)
        case "table":
            return written.key == read.key
        case "topic":
            return bool(written.at & read.at) and _topic_matches(written.key[0], read)
        case "relation":
            return written.at == read.at and written.key == read.key


def is_same(one: StorePlace, other: StorePlace) -> bool:
    """Do two sinks write to one place?"""
    if one.kind == "folder" == other.kind:
        return matches(one.key[0], other.key[0])
    return one.kind == other.kind and one.key == other.key and (not one.at or bool(one.at & other.at))


def _folder_feeds(written: StorePlace, read: StorePlace) -> bool:
    (to,), (pattern,) = written.key, read.key
    if to == pattern:
        return True
    if read.provider:
        return False  # a table is read by its own folder only
    if is_within(pattern, to):
        below = to.removeprefix(pattern).strip("/").split("/")
        return read.is_recursive or has_glob(pattern) or all(_PARTITION.match(part) for part in below)
    # A reader of `out/day=2026-*` sees a part of what goes to `out`.
    inside = pattern.removeprefix(f"{to}/").split("/") if pattern.startswith(f"{to}/") else []
    return bool(inside) and all(_PARTITION.match(part) or has_glob(part) for part in inside)


def _topic_matches(topic: str, read: StorePlace) -> bool:
    if not read.is_pattern:
        return topic == read.key[0]
    try:
        return re.fullmatch(read.key[0], topic) is not None
    except re.error:  # Java's own spelling: whether it matches is not known
        return False


def _resolved(text: str, environ: Mapping[str, str]) -> str:
    try:
        return str(references.resolve(text, environ))
    except references.Unset:
        return text


def _normal(path: str) -> str:
    if path.startswith("file:/"):
        path = str(to_local(path))
    if not is_url(path):
        return normpath(path)
    scheme, _, rest = path.partition("://")
    host, slash, below = rest.partition("/")
    return f"{scheme}://{host}{normpath(slash + below) if below else ''}".rstrip("/")


def _table(name: str, project: Project) -> tuple[str, ...]:
    try:
        parts = parts_of(name)
    except ValueError:
        return (name,)
    if parts[0] in project.catalogs or parts[0] == _SPARK_CATALOG:
        catalog, rest = parts[0], parts[1:]
    else:
        catalog, rest = (parts[0], parts[1:]) if len(parts) > 2 else (_SPARK_CATALOG, parts)
    if catalog != _SPARK_CATALOG:
        return (catalog, *rest)
    rest = rest if len(rest) > 1 else ("default", *rest)
    return (catalog, *(part.lower() for part in rest))  # Spark's own catalog knows no upper case


def _address(store: Store, project: Project, environ: Mapping[str, str], key: str) -> str:
    given = store.at
    if not given and store.connection is not None and store.connection in project.connections:
        given = getattr(project.connections[store.connection], key, None) or ""
    return _resolved(given, environ) or f"connection {store.connection}"


def _server(text: str) -> str:
    return text.strip().lower().replace("localhost:", "127.0.0.1:")


def _database(url: str) -> str:
    try:
        split = urlsplit(url.removeprefix("jdbc:"))
        if split.scheme not in _POSTGRES:
            return url
        host = (split.hostname or "localhost").replace("localhost", "127.0.0.1")
        return f"postgresql://{host}:{split.port or 5432}{split.path}"
    except ValueError:  # an unresolved reference, or several hosts
        return url.partition("?")[0]


def _relation(name: str) -> tuple[str, ...]:
    try:
        parts = TableName.parse(name).parts
    except ValueError:
        return (name,)
    return parts if len(parts) > 1 else ("public", *parts)
