"""The frozen pipeline: what both ways of writing one become, and what everything else judges and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from penstock.dead_letters.as_step import DeadLetters
from penstock.pipeline.yaml_text import Document, KeyPath
from penstock.problems import Where
from penstock.query.async_progress import AsyncProgress
from penstock.query.guarantees import Guarantee, weakest
from penstock.query.restarts import ON_FAILURE, RESTARTS, Level, OnFailure, Restarts
from penstock.query.state_store import State
from penstock.query.tags import TAGS, Tags
from penstock.query.triggers import OF_LATENCY, AnyTrigger, Latency, Trigger
from penstock.sinks.sink import Mode, SinkSpec
from penstock.sources.source import SourceSpec
from penstock.spec import Name, Option, Part, Spec
from penstock.transforms.functions import Function
from penstock.transforms.step import StepSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Origin:
    """Where a node was written, and each of its values where that is known."""

    where: Where
    document: Document | None = None
    path: KeyPath = ()

    def at(self, *keys: str | int) -> Where:
        """The place of a value below the node, or of the node itself."""
        if self.document is None or (*self.path, *keys) not in self.document.values:
            return self.where
        return self.document.values[(*self.path, *keys)]


@dataclass(frozen=True)
class Node:
    """A named part of a pipeline. Two are equal when they mean the same, wherever they were written."""

    name: str
    spec: Part
    origin: Origin = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Source(Node):
    """A named place where rows come from."""

    spec: SourceSpec


@dataclass(frozen=True)
class Step(Node):
    """Named rows made from those of sources and other steps."""

    spec: StepSpec
    inputs: tuple[str, ...]
    code: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    """The function or class itself, where Python gave it: one of a notebook has no module to import it from."""

    def apply(self, spark: SparkSession, inputs: Mapping[str, DataFrame], mode: Mode) -> DataFrame:
        """The rows, made from those of the inputs, in a query of that output mode."""
        return self.spec.apply(spark, inputs, mode, self.code)


@dataclass(frozen=True)
class Sink(Node):
    """A named place where the rows of `of` go."""

    spec: SinkSpec
    of: str


class QuerySettings(Spec):
    """What differs from the defaults for one query."""

    mode: Mode = Field("append", description="`append` new rows, `update` changed rows, or `complete`, all rows.")
    trigger: AnyTrigger | None = Field(None, description="When it looks for new rows; `latency` decides by default.")
    latency: Latency | None = Field(None, description="The pipeline's own word by default.")
    async_progress: AsyncProgress | None = Field(
        None,
        description="Writes progress down beside the work: `true`, or how often (`1 second`). For queries without state"
        " that write to Kafka alone; `latency: low` does so by itself.",
    )
    spark: dict[str, Option] = Field(default_factory=dict, description="Spark settings of this query's session.")
    state: State | None = Field(None, description="Where it keeps its state: what differs from the project's `state`.")
    watermark_policy: Literal["min", "max"] | None = Field(
        None,
        description="With several watermarks: `min`, the default, waits for the slowest input; `max` goes with the"
        " fastest, and what the others bring later is dropped. Fixed at birth.",
    )
    was: Name | None = Field(None, description="Its former name: it goes on with that checkpoint.")
    max_bad_share: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Stops the query after a batch in which a greater share of the rows is bad; `0.1` is a tenth.",
    )
    tags: Tags = Field((), description=TAGS)
    accept: tuple[str, ...] = Field(
        (),
        description="Codes of `penstock plan` that this query resumes with all the same, such as `[PLAN014]`: you have"
        " read what each means for its rows.",
    )
    on_failure: OnFailure | None = Field(None, description=ON_FAILURE)
    restarts: Restarts | None = Field(None, description=RESTARTS)

    @property
    def level(self) -> Level:
        return Level(self.restarts, self.on_failure)


@dataclass(frozen=True)
class Query:
    """What Spark runs: one step with the sinks fed from it, one session, one checkpoint."""

    name: str
    sinks: tuple[Sink, ...]
    settings: QuerySettings
    latency: Latency
    origin: Origin = field(compare=False, repr=False, kw_only=True)

    @property
    def sink(self) -> Sink:
        """The only sink, or the first of several."""
        return self.sinks[0]

    @property
    def trigger(self) -> Trigger:
        return self.settings.trigger or OF_LATENCY[self.latency]


@dataclass(frozen=True)
class Pipeline:
    """Sources → steps → sinks, and the queries that carry them."""

    name: str
    latency: Latency
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    settings: Mapping[str, QuerySettings]
    listeners: tuple[str, ...] = ()
    description: str = ""
    functions: Mapping[str, Function] = field(default_factory=dict)
    dead_letters: SinkSpec | None = None
    """Where dead letters go; each node that has some has a folder of its own in it. None where nothing asks for it."""
    level: Level = Level()
    """What it says about restarts and failures."""
    tags: tuple[str, ...] = ()
    origin: Origin = field(compare=False, repr=False, kw_only=True)
    settings_origins: Mapping[str, Origin] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """One per node that feeds a sink, in the order of the sinks."""
        fed: dict[str, list[Sink]] = {}
        for sink in self.sinks:
            fed.setdefault(sink.of, []).append(sink)
        queries = []
        for name, sinks in fed.items():
            settings = self._settings_of(name)
            origin = self.settings_origins.get(name) or sinks[0].origin
            queries.append(Query(name, tuple(sinks), settings, self._latency_of(name, settings), origin=origin))
        return tuple(queries)

    @cached_property
    def nodes(self) -> dict[str, Source | Step]:
        """Everything a step can read from, by name."""
        return {node.name: node for node in self.sources} | {node.name: node for node in self.steps}

    @cached_property
    def guarded(self) -> dict[str, Function]:
        """The functions whose exceptions are told row by row."""
        return {name: function for name, function in self.functions.items() if function.is_guarded}

    def upstream(self, name: str) -> tuple[Source | Step, ...]:
        """The node and all it is made from, inputs before what is made of them. Cycles are cut, not followed."""
        nodes = self.nodes
        ordered: dict[str, Source | Step] = {}
        seen: set[str] = set()
        waiting = [(name, False)]
        while waiting:
            current, inputs_done = waiting.pop()
            node = nodes.get(current)
            if node is None:
                continue
            if inputs_done:
                ordered[current] = node
            elif current not in seen:
                seen.add(current)
                waiting.append((current, True))
                if isinstance(node, Step):
                    waiting += [(one, False) for one in reversed(node.inputs)]
        return tuple(ordered.values())

    def mode_of(self, query: str) -> Mode:
        """The output mode of the query of that name, or the default where there is none."""
        return self._settings_of(query).mode

    def _settings_of(self, query: str) -> QuerySettings:
        settings = self.settings.get(query, QuerySettings())
        if self._latency_of(query, settings) == "realtime" and not {"mode", "trigger"} & settings.model_fields_set:
            # Rows that leave at once cannot wait to be final: Real-Time Mode knows no other mode.
            return settings.model_copy(update={"mode": "update"})
        return settings

    def _latency_of(self, query: str, settings: QuerySettings) -> Latency:
        if settings.latency or self.latency != "realtime" or not self.puts_aside(query):
            return settings.latency or self.latency
        return "balanced"  # dead letters are read by people, and their sinks take batches

    def place_of_trigger(self, query: Query) -> Where:
        """Where a query's trigger is written, or the word that stands for it."""
        if query.settings.trigger:
            return query.origin.at("trigger")
        return (query if query.settings.latency else self).origin.at("latency")

    def is_ephemeral(self, query: Query) -> bool:
        """Has it nothing to resume? Its sink is gone with the process, or a source cannot be read again."""
        gone = any(sink.spec.declared_capabilities.ephemeral for sink in query.sinks)
        return gone or any(not source.spec.declared_capabilities.replayable for source in self.sources_of(query.name))

    def is_native(self, query: Query) -> bool:
        """May Spark's own sink write it? Otherwise Penstock hands each batch to the sinks."""
        spec = query.sink.spec
        sources = [source.spec.declared_capabilities for source in self.sources_of(query.name)]
        if len(query.sinks) > 1 or not spec.declared_capabilities.native or spec.batch_sql is not None:
            return False
        return not any(one.checks_batches for one in sources) and not self.may_refuse_what_is_written(query)

    def may_refuse_what_is_written(self, query: Query) -> bool:
        """Could some of a batch be out when a source refuses it? What is atomic takes it back."""
        refuses = any(source.spec.declared_capabilities.refuses_batches for source in self.sources_of(query.name))
        return refuses and any(
            sink.spec.declared_capabilities.guarantee.promise == "at-least-once" for sink in query.sinks
        )

    def guarantee_of(self, query: Query, sink: Sink | None = None, interval: str | None = None) -> Guarantee:
        """What a query promises of one sink, or of all: the weakest of its sources, its trigger and its sinks.

        With an interval, progress is written down beside the work, so often.
        """
        handed_on = Guarantee("at-least-once", "rows leave before their batch ends, and again if it does not")
        sources = [
            Guarantee("none", f"source `{source.name}` cannot be replayed")
            for source in self.sources_of(query.name)
            if not source.spec.declared_capabilities.replayable
        ]
        sinks = [sink] if sink else query.sinks
        trigger = [handed_on] if query.trigger.emits_early else []
        return weakest([*(one.spec.guarantee_with(interval) for one in sinks), *trigger, *sources])

    def sources_of(self, name: str) -> tuple[Source, ...]:
        return tuple(node for node in self.upstream(name) if isinstance(node, Source))

    def tags_of(self, name: str) -> frozenset[str]:
        """The words that a source or step is chosen by: its own, those of its query, and those of the pipeline."""
        node, settings = self.nodes.get(name), self.settings.get(name)
        own = node.spec.tags if isinstance(node, Step) else ()
        return frozenset((*self.tags, *own, *(settings.tags if settings else ())))

    def puts_aside(self, name: str) -> bool:
        """Is this the step of another node's dead letters?"""
        node = self.nodes.get(name)
        return node is not None and isinstance(node.spec, DeadLetters)
