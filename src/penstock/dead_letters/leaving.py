"""Where dead letters leave: through a query of their own, or with the rows of a Kafka sink."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from penstock import catalog
from penstock.dead_letters.as_step import DeadLetters, query_name
from penstock.formats.messages import JsonMessageWrite
from penstock.pipeline.model import Pipeline, Query, QuerySettings, Sink, Source, Step
from penstock.sinks.files import Files
from penstock.sinks.sink import SinkSpec
from penstock.sources.source import Decoded
from penstock.transforms.sql import Sql

_PLAIN_LETTER: dict[str, Any] = {
    "format": JsonMessageWrite(),
    "record_id": ("id",),
    "topic_column": None,
    "value": (),
    "key": (),
    "key_format": None,
    "headers": {},
    "partition_column": None,
}
"""What a dead letter does not take over from the sink of the good rows."""


def with_dead_letters(pipeline: Pipeline) -> Pipeline:
    """The pipeline with a query for the dead letters of each node that has some."""
    place = pipeline.dead_letters or _routed_place(pipeline) or _default_place(pipeline)
    routed = {name for query in pipeline.queries for name in routed_nodes(pipeline, query)}
    nodes = [node for node in pipeline.nodes.values() if node.name not in routed and puts_aside(node, pipeline)]
    steps, sinks, settings = list(pipeline.steps), list(pipeline.sinks), dict(pipeline.settings)
    for node in nodes:
        name = query_name(node.name)
        if name in pipeline.nodes:
            continue  # a rule tells that the name is taken
        steps.append(Step(name, DeadLetters(dead_letters=node.name), (node.name,), origin=node.origin))
        sinks.append(Sink(name, at(place, node.name), name, origin=node.origin))
        settings.setdefault(name, QuerySettings())
    return replace(pipeline, steps=tuple(steps), sinks=tuple(sinks), settings=settings, dead_letters=place)


def routed_nodes(pipeline: Pipeline, query: Query) -> tuple[str, ...]:
    """The nodes whose dead letters leave with the rows of this query."""
    if routed_letters(query) is None:
        return ()
    return tuple(node.name for node in pipeline.upstream(query.name) if puts_aside(node, pipeline))


def routed_letters(query: Query) -> SinkSpec | None:
    """The sink for the dead letters that leave with the rows of this query, or None."""
    topic = getattr(query.sink.spec, "dead_letter_topic", None)
    if topic is None or len(query.sinks) > 1:
        return None
    return query.sink.spec.model_copy(update={"topic": topic, "dead_letter_topic": None, **_PLAIN_LETTER})


def _routed_place(pipeline: Pipeline) -> SinkSpec | None:
    return next((place for query in pipeline.queries if (place := routed_letters(query))), None)


def dead_letter_sinks() -> dict[str, type[SinkSpec]]:
    """The sinks that can hold dead letters: those that `penstock dead-letters` can read again."""
    return {name: sink for name, sink in catalog.sinks().items() if name in ("delta", "files", "kafka")}


def at(place: SinkSpec, node: str) -> SinkSpec:
    """The place for the dead letters of one node: a folder of its own, where it has a path."""
    if path := getattr(place, "path", None):
        return place.model_copy(update={"path": f"{path.rstrip('/')}/{node}"})
    # The time at which a letter was written is part of it, so its content cannot tell a repeat.
    return place.model_copy(update={"record_id": ("id",)}) if getattr(place, "record_id", None) == () else place


def _default_place(pipeline: Pipeline) -> SinkSpec:
    return Files.model_validate({"type": "files", "path": f"dead_letters/{pipeline.name}", "format": "parquet"})


def puts_aside(node: Source | Step, pipeline: Pipeline) -> bool:
    spec = node.spec
    if isinstance(spec, Decoded) and spec.on_bad_record == "dead_letter":
        return True
    if any(expectation.otherwise == "dead_letter" for expectation in spec.expect.values()):
        return True
    if spec.watermark is not None and spec.watermark.puts_aside:
        return True
    called = {name.lower() for name, function in pipeline.functions.items() if function.policy == "dead_letter"}
    return isinstance(spec, Sql) and any(word.lower() in called for word in re.findall(r"\w+(?=\s*\()", spec.sql))
