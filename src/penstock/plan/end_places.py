"""Where a query reads and writes, so that a later start can tell whether it is still the same place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.facts.signature import EndPlace
from penstock.notation.paths import is_local
from penstock.notation.references import without_secrets
from penstock.pipeline.model import Pipeline, Query, Sink, Source
from penstock.pipeline.project import Project
from penstock.plan import decoding
from penstock.plan.expressions import digest

KEYS = ("path", "table", "topics", "topic_pattern", "assign", "topic", "topic_column", "servers", "url", "endpoint",
         "query", "host", "port", "each_batch", "foreach")  # fmt: skip
"""The keys of sources and sinks that say where they read or write."""
_SETTINGS = ("starting", "starting_version", "starting_timestamp", "from_timestamp", "from_snapshot", "writes", "write",
             "keys", "partition_by", "rows_per_second", "change_feed", *decoding.SETTINGS)  # fmt: skip
"""What a resume ignores, or what changes the meaning of what is written."""


def sources(written: Pipeline, resolved: Pipeline, query: str, project: Project) -> tuple[EndPlace, ...]:
    """By name; streams and static sources."""
    original = {source.name: source for source in written.sources}
    return tuple(_place(original[source.name], source, project) for source in resolved.sources_of(query))


def sinks(written: Query, resolved: Query, project: Project) -> tuple[EndPlace, ...]:
    original = {sink.name: sink for sink in written.sinks}
    return tuple(_place(original.get(sink.name, sink), sink, project) for sink in resolved.sinks)


def _place(written: Source | Sink, resolved: Source | Sink, project: Project) -> EndPlace:
    text, real = _dumped(written), _dumped(resolved)
    shown = ", ".join(_shown(text[key]) for key in KEYS if text.get(key) is not None and key != "servers")
    parts = {key: _hashes(key, real[key], project) for key in KEYS if real.get(key) is not None}
    # With defaults: to write one out changes nothing.
    every = written.spec.model_dump(mode="json", by_alias=True, warnings="none", include=set(_SETTINGS))
    settings = {
        key: json.dumps(without_secrets(key, every[key]), sort_keys=True, default=str)
        for key in _SETTINGS
        if every.get(key) not in (None, [], ())
    }
    kind = str(real.get("type") or getattr(resolved.spec, "type", ""))
    if kind == "spark":
        kind = f"spark {real.get('format', '')}".strip()
    static = isinstance(resolved, Source) and resolved.spec.is_static
    return EndPlace(resolved.name, kind, shown, parts, static, settings)


def _dumped(node: Source | Sink) -> Mapping[str, Any]:
    return node.spec.given()


def _hashes(key: str, value: Any, project: Project) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(sorted(digest(_normal(key, one, project)) for one in values))


def _normal(key: str, value: Any, project: Project) -> str:
    if not isinstance(value, str):
        return json.dumps(value, sort_keys=True, default=str)
    if key == "path":
        path = project.absolute(value)
        return path.removeprefix("file://").removeprefix("file:").rstrip("/") if is_local(path) else path.rstrip("/")
    if key == "servers":
        return ",".join(sorted(one.strip() for one in value.split(",")))
    return value


def _shown(value: Any) -> str:
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return str(without_secrets("", shown))
