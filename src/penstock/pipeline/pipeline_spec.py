"""What both ways of writing a pipeline share: the keys of its top, and the inputs of a SQL step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from penstock.pipeline.model import Origin, Step
from penstock.query.restarts import ON_FAILURE, RESTARTS, OnFailure, Restarts
from penstock.query.tags import TAGS, Tags
from penstock.query.triggers import Latency
from penstock.spec import Name, Spec
from penstock.transforms.functions import Function
from penstock.transforms.sql import Sql, tables_in
from penstock.transforms.sql_parser import SqlNotUnderstood


class PipelineSpec(Spec):
    """The top of a pipeline's file."""

    pipeline: Name = Field(description="The pipeline's name: letters, digits and `_`.", pattern=r"^[A-Za-z_]\w*$")
    description: str = Field("", description="What it is for.")
    latency: Latency = Field("balanced", description="One word for trigger and tuning, from milliseconds to minutes.")
    sources: dict[str, Any] = Field(description="Where rows come from, by name.", min_length=1)
    steps: dict[str, Any] = Field(default_factory=dict, description="What is made of them, by name.")
    sinks: dict[str, Any] = Field(description="Where rows go, by name.", min_length=1)
    queries: dict[str, Any] = Field(default_factory=dict, description="What differs from the defaults, by step.")
    functions: dict[str, Function] = Field(
        default_factory=dict,
        description="Python functions for SQL steps, by name; a row on which one raises is a bad record.",
    )
    dead_letters: Any = Field(
        None,
        description="Where bad records go: a `files`, `delta` or `kafka` sink without `of`."
        " By default a Parquet folder for each source and step, in `dead_letters/<pipeline>`.",
    )
    on_failure: OnFailure | None = Field(None, description=ON_FAILURE)
    restarts: Restarts | None = Field(None, description=RESTARTS)
    tags: Tags = Field((), description=TAGS)
    listeners: tuple[str, ...] = Field((), description="`module:Class` of your own StreamingQueryListeners.")


def sql_step(name: str, spec: Any, nodes: Iterable[str], origin: Origin) -> Step:
    """A SQL step with its inputs: the sources and steps that its SELECT names."""
    assert isinstance(spec, Sql)  # noqa: S101 - for the type checker: the catalog gave it
    known = {node.lower(): node for node in nodes}
    try:
        tables = tables_in(spec.sql)
    except SqlNotUnderstood:
        # Spark's own parser judges later. Until then every node that the text mentions counts as an input.
        words = {word.lower() for word in re.findall(r"\w+", spec.sql)}
        inputs = tuple(node for lower, node in known.items() if lower in words and node != name)
    else:
        read = (known.get(table.lower(), table) for table in tables)
        inputs = tuple(dict.fromkeys(read))
    return Step(name, spec, inputs, origin=origin)
