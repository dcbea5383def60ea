"""The pipelines of a project and what joins them: who feeds whom, in which order, and where it goes round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.graph.joining import StorePlace, feeds, place_of
from penstock.pipeline.model import Pipeline, Sink, Source, Step
from penstock.pipeline.project import Project

NodeName = tuple[str, str]
"""A pipeline, and a source or step of it. A query has the name of the step that it writes."""


@dataclass(frozen=True)
class Joint:
    """A sink of one query writes what a source reads."""

    writer: NodeName
    """The query."""
    sink: Sink
    reader: NodeName
    """The source."""
    source: Source
    place: StorePlace
    """What joins them, as the source names it."""
    written: StorePlace
    """The same as the sink names it."""

    @property
    def is_static(self) -> bool:
        return self.source.spec.is_static

    @property
    def comes_back(self) -> bool:
        """Does the reader take up each row that is written? A table read as a whole, or without changes, does not."""
        passes_over = getattr(self.source.spec, "skip_change_commits", False)
        changes = getattr(self.sink.spec, "writes", "append") != "append"
        return not self.is_static and not (passes_over and changes)


@dataclass(frozen=True)
class ProjectGraph:
    """Nodes are sources and steps. An edge goes from an input to a step, or from a step through a store to a source."""

    pipelines: tuple[Pipeline, ...]
    joints: tuple[Joint, ...]

    @cached_property
    def by_name(self) -> dict[str, Pipeline]:
        return {pipeline.name: pipeline for pipeline in self.pipelines}

    @cached_property
    def queries(self) -> tuple[NodeName, ...]:
        """Every query, in the order in which it is declared."""
        return tuple((pipeline.name, query.name) for pipeline in self.pipelines for query in pipeline.queries)

    @cached_property
    def nodes(self) -> tuple[NodeName, ...]:
        return tuple((pipeline.name, name) for pipeline in self.pipelines for name in pipeline.nodes)

    @cached_property
    def flowing_nodes(self) -> tuple[NodeName, ...]:
        """Every node after those that it is made from, as far as nothing goes round."""
        found: dict[NodeName, None] = {}
        seen: set[NodeName] = set()
        waiting = [(node, False) for node in reversed(self.nodes)]
        while waiting:
            node, is_fed = waiting.pop()
            if is_fed:
                found[node] = None
            elif node not in seen:
                seen.add(node)
                waiting.append((node, True))
                waiting += [(one, False) for one in reversed(self.parents[node])]
        return tuple(found)

    @cached_property
    def parents(self) -> dict[NodeName, tuple[NodeName, ...]]:
        """By node, those that it is made from."""
        found: dict[NodeName, list[NodeName]] = {node: [] for node in self.nodes}
        for pipeline in self.pipelines:
            for step in pipeline.steps:
                made_from = [(pipeline.name, one) for one in step.inputs if one in pipeline.nodes]
                found[pipeline.name, step.name] += made_from
        for joint in self.joints:
            found[joint.reader].append(joint.writer)
        return {node: tuple(dict.fromkeys(before)) for node, before in found.items()}

    @cached_property
    def children(self) -> dict[NodeName, tuple[NodeName, ...]]:
        """By node, those that are made from it."""
        found: dict[NodeName, list[NodeName]] = {node: [] for node in self.nodes}
        for node, before in self.parents.items():
            for one in before:
                found[one].append(node)
        return {node: tuple(after) for node, after in found.items()}

    def ancestors(self, nodes: Iterable[NodeName]) -> set[NodeName]:
        """The nodes and all that they are made from."""
        return _reached(nodes, self.parents)

    def descendants(self, nodes: Iterable[NodeName]) -> set[NodeName]:
        """The nodes and all that is made from them."""
        return _reached(nodes, self.children)

    def joints_into(self, query: NodeName) -> tuple[Joint, ...]:
        """Those through which other queries, or it itself, feed a query."""
        pipeline = self.by_name.get(query[0])
        sources = {source.name for source in pipeline.sources_of(query[1])} if pipeline else set()
        return tuple(joint for joint in self.joints if joint.reader[0] == query[0] and joint.reader[1] in sources)

    def joints_of(self, reader: NodeName) -> tuple[Joint, ...]:
        """Those that feed a source."""
        return tuple(joint for joint in self.joints if joint.reader == reader)

    def stages(self, queries: Collection[NodeName]) -> tuple[tuple[NodeName, ...], ...]:
        """Queries in the order in which each finds all that the others write; those that go round run together."""
        chosen = [query for query in self.queries if query in set(queries)]
        into = {query: [one for one in self.joints_into(query) if one.writer in chosen] for query in chosen}
        before = {query: {one.writer for one in found} - {query} for query, found in into.items()}
        # What is read as a whole is no reason to go round: the way that rows flow decides.
        around = {query: _loop_of(query, before) for query in chosen}
        for query, found in into.items():
            flowing = {one.writer for one in found if not one.is_static}
            before[query] = {one for one in before[query] if one in flowing or one not in around[query]}
        around = {query: _loop_of(query, before) for query in chosen}
        level: dict[NodeName, int] = {}
        while len(level) < len(chosen):
            ready = [
                query
                for query in chosen
                if query not in level
                and all(one in level or one in around[query] for member in around[query] for one in before[member])
            ]
            level |= dict.fromkeys(ready, max(level.values(), default=-1) + 1)
        return tuple(
            tuple(query for query in chosen if level[query] == number) for number in sorted(set(level.values()))
        )

    def loops(self) -> tuple[tuple[Joint, ...], ...]:
        """Each way on which rows come back to the query that wrote them, once, as the joints on it."""
        flowing: dict[NodeName, list[Joint]] = {}
        for query in self.queries:
            for joint in self.joints_into(query):
                if joint.comes_back:
                    flowing.setdefault(joint.writer, []).append(joint)
        found: dict[frozenset[NodeName], tuple[Joint, ...]] = {}
        for query in self.queries:
            if way := self._way_back(query, flowing):
                found.setdefault(frozenset(joint.writer for joint in way), way)
        return tuple(found.values())

    def _way_back(self, start: NodeName, flowing: Mapping[NodeName, list[Joint]]) -> tuple[Joint, ...]:
        ways: list[tuple[Joint, ...]] = [(joint,) for joint in flowing.get(start, ())]
        seen: set[NodeName] = set()
        while ways:
            way = ways.pop(0)
            for query in self._queries_reading(way[-1].reader):
                if query == start:
                    return way
                if query not in seen:
                    seen.add(query)
                    ways += [(*way, joint) for joint in flowing.get(query, ())]
        return ()

    def _queries_reading(self, source: NodeName) -> Iterator[NodeName]:
        pipeline = self.by_name[source[0]]
        for query in pipeline.queries:
            if any(one.name == source[1] for one in pipeline.sources_of(query.name)):
                yield pipeline.name, query.name


def graph_of(pipelines: Iterable[Pipeline], project: Project, environ: Mapping[str, str]) -> ProjectGraph:
    """Joins pipelines, as written or as resolved, by what they name. A pure function: nothing is looked at."""
    known = {pipeline.name: pipeline for pipeline in pipelines}  # of two with one name a Problem is told elsewhere
    written = [
        (pipeline, sink, place_of(store, project, environ))
        for pipeline in known.values()
        for sink in pipeline.sinks
        if sink.of in pipeline.nodes
        for store in sink.spec.stores
    ]
    joints = [
        Joint((pipeline.name, sink.of), sink, (reader.name, source.name), source, place, to)
        for reader in known.values()
        for source in reader.sources
        for place in _places_read(source, project, environ)
        for pipeline, sink, to in written
        if feeds(to, place)
    ]
    return ProjectGraph(tuple(known.values()), tuple({(j.writer, j.sink.name, j.reader): j for j in joints}.values()))


def _places_read(source: Source, project: Project, environ: Mapping[str, str]) -> Iterator[StorePlace]:
    recursive = bool(getattr(source.spec, "recursive_file_lookup", False))
    for store in source.spec.stores:
        yield place_of(store, project, environ, recursive=recursive)


def with_dead_letters_of(pipeline: Pipeline, queries: Iterable[str]) -> frozenset[str]:
    """Queries with those that write the dead letters of what they are made from: neither is whole without the other."""
    asked = set(queries)
    made_from = {node.name for query in asked for node in pipeline.upstream(query)}
    letters = {
        query.name
        for query in pipeline.queries
        if pipeline.puts_aside(query.name)
        and isinstance(node := pipeline.nodes[query.name], Step)
        and set(node.inputs) <= made_from
    }
    return frozenset(asked | letters)


def _reached(nodes: Iterable[NodeName], following: Mapping[NodeName, Collection[NodeName]]) -> set[NodeName]:
    found = set(nodes)
    edge = set(found)
    while edge:
        edge = {after for node in edge for after in following.get(node, ())} - found
        found |= edge
    return found


def _loop_of(query: NodeName, before: Mapping[NodeName, Collection[NodeName]]) -> set[NodeName]:
    """The query itself, and the others that it feeds and that feed it."""
    return {one for one in _reached([query], before) if query in _reached([one], before)}
