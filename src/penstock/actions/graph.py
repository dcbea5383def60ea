"""The graph of a project: pipelines, their queries, and what joins them. Without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.facts.stores import Store
from penstock.graph.project_graph import NodeName, ProjectGraph
from penstock.pipeline.load import Loaded, load
from penstock.pipeline.model import Pipeline, Sink, Source, Step
from penstock.problems import Problem, errors_in


@dataclass(frozen=True)
class End:
    """A source or sink: what it reads or writes, and who is at the other end."""

    name: str
    type: str
    places: tuple[str, ...]
    """Paths, tables and topics, as they are written."""
    others: tuple[str, ...]
    """The queries that feed it, or that it feeds."""
    is_static: bool = False


@dataclass(frozen=True)
class QueryEnds:
    """A query with what it reads and writes."""

    pipeline: str
    query: str
    reads: tuple[End, ...]
    writes: tuple[End, ...]
    tags: tuple[str, ...]
    stage: int
    """In `run --once` it runs after all queries of lower stages; counts from 1."""

    @property
    def full_name(self) -> str:
        return f"{self.pipeline}.{self.query}"


@dataclass(frozen=True)
class GraphResult:
    """The part of a project's graph that was asked for."""

    loaded: Loaded
    queries: tuple[QueryEnds, ...]
    """In the order in which `run --once` runs them."""
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        return not errors_in(self.problems)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "pipelines": [
                {
                    "name": one.name,
                    "file": one.origin.where.file,
                    "description": one.description,
                    "tags": list(one.tags),
                }
                for one in self.loaded.pipelines
            ],
            "queries": [
                {
                    "pipeline": one.pipeline,
                    "query": one.query,
                    "stage": one.stage,
                    "tags": list(one.tags),
                    "reads": [_end_json(end, "from") | {"static": end.is_static} for end in one.reads],
                    "writes": [_end_json(end, "to") for end in one.writes],
                }
                for one in self.queries
            ],
            "problems": [problem.to_json() for problem in self.problems],
        }

    def to_mermaid(self) -> str:
        """A flowchart as Mermaid draws it: on GitHub, in notebooks, in many editors."""
        return "\n".join(_mermaid(self)) + "\n"


def graph(start: Path, selection: tuple[str, ...], environment: str | None) -> GraphResult:
    """Raises UserError when there is nothing to draw."""
    loaded = load(start, selection, environment)
    asked = [one for one in loaded.graph.queries if _is_asked(one, loaded)]
    stages = loaded.graph.stages(asked)
    queries = tuple(_ends(loaded.graph, node, number) for number, stage in enumerate(stages, start=1) for node in stage)
    return GraphResult(loaded, queries, loaded.problems)


def _is_asked(query: NodeName, loaded: Loaded) -> bool:
    names = {pipeline.name for pipeline in loaded.pipelines}
    return query[0] in names and (loaded.chosen is None or query[1] in loaded.chosen.get(query[0], ()))


def _ends(found: ProjectGraph, node: NodeName, stage: int) -> QueryEnds:
    pipeline = found.by_name[node[0]]
    query = next(one for one in pipeline.queries if one.name == node[1])
    reads = tuple(
        End(source.name, source.spec.type, _places(source),
            tuple(dict.fromkeys(".".join(one.writer) for one in found.joints_of((pipeline.name, source.name)))),
            source.spec.is_static)
        for source in pipeline.sources_of(query.name)
    )  # fmt: skip
    writes = tuple(
        End(sink.name, sink.spec.type, _places(sink), tuple(_readers(found, node, sink))) for sink in query.sinks
    )
    return QueryEnds(*node, reads, writes, tuple(sorted(pipeline.tags_of(query.name))), stage)


def _readers(found: ProjectGraph, node: NodeName, sink: Sink) -> list[str]:
    sources = {joint.reader for joint in found.joints if joint.writer == node and joint.sink.name == sink.name}
    return [
        ".".join(query)
        for query in found.queries
        if any((query[0], one.name) in sources for one in found.by_name[query[0]].sources_of(query[1]))
    ]


def _places(node: Source | Sink) -> tuple[str, ...]:
    return tuple(_shown(store) for store in node.spec.stores)


def _shown(store: Store) -> str:
    return f"/{store.name}/" if store.is_pattern else store.name


def _end_json(end: End, others: str) -> dict[str, Any]:
    return {"name": end.name, "type": end.type, "places": list(end.places), others: list(end.others)}


class _Flowchart:
    """Lines of Mermaid. Each thing gets a number for a name: names of users may be alike when put together."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, ...], str] = {}
        self.lines = ["flowchart LR"]
        self.arrows: dict[str, None] = {}

    def id_of(self, *name: str) -> str:
        return self._ids.setdefault(name, f"n{len(self._ids)}")

    def has(self, *name: str) -> bool:
        return name in self._ids

    def arrow(self, start: str, end: str, how: str = "-->") -> None:
        self.arrows[f"  {start} {how} {end}"] = None


def _mermaid(result: GraphResult) -> list[str]:
    chart = _Flowchart()
    asked = {(one.pipeline, one.query) for one in result.queries}
    for pipeline in result.loaded.pipelines:
        queries = [query for query in pipeline.queries if (pipeline.name, query.name) in asked]
        nodes = {node.name: node for query in queries for node in pipeline.upstream(query.name)}
        chart.lines.append(f"  subgraph {chart.id_of('pipeline', pipeline.name)}[{_text(pipeline.name)}]")
        for name, node in nodes.items():
            chart.lines.append(f"    {chart.id_of('node', pipeline.name, name)}{_shape(node)}")
            for one in node.inputs if isinstance(node, Step) else ():
                if one in nodes:
                    chart.arrow(chart.id_of("node", pipeline.name, one), chart.id_of("node", pipeline.name, name))
        chart.lines.append("  end")
        for sink in (sink for query in queries for sink in query.sinks):
            _draw_sink(chart, pipeline, sink)
    for joint in result.loaded.graph.joints:
        store = ("store", joint.sink.spec.type, joint.written.shown)
        if chart.has(*store) and chart.has("node", *joint.reader):
            chart.arrow(chart.id_of(*store), chart.id_of("node", *joint.reader), "-.->" if joint.is_static else "-->")
    return [*chart.lines, *chart.arrows]


def _draw_sink(chart: _Flowchart, pipeline: Pipeline, sink: Sink) -> None:
    for place in _places(sink) or (f"{sink.name} of {pipeline.name}",):
        store = ("store", sink.spec.type, place.rstrip("/") or place)
        if not chart.has(*store):
            chart.lines.append(f"  {chart.id_of(*store)}[({_text(f'{sink.spec.type} {place}')})]")
        chart.arrow(chart.id_of("node", pipeline.name, sink.of), chart.id_of(*store))


def _shape(node: Source | Step) -> str:
    if isinstance(node, Step):
        return f"[{_text(node.name)}]"
    places = ", ".join(_places(node))
    return f"([{_text(f'{node.name}: {node.spec.type} {places}'.strip())}])"


def _text(text: str) -> str:
    return '"' + text.replace('"', "#quot;").replace("\n", " ") + '"'
