"""Which part of a project a command is for: `gold`, `clicks.per_page`, `+gold`, `silver+`, `tag:hourly`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from penstock.graph.project_graph import NodeName, ProjectGraph, with_dead_letters_of
from penstock.pipeline.model import Pipeline
from penstock.problems import Problem, UserError

TAG = "tag:"
_SHOWN = 20


@dataclass(frozen=True)
class Selector:
    """One word of a command line. `base` is a pipeline, a node, `pipeline.node`, a file or `tag:…`."""

    text: str
    base: str
    above: bool = False
    """With all that feeds it."""
    below: bool = False
    """With all that it feeds."""

    @property
    def looks_around(self) -> bool:
        """Does it mean pipelines that it does not name?"""
        return self.above or self.below or self.base.startswith(TAG)


def parsed(text: str) -> Selector:
    """`+gold+` → gold, with what feeds it and what it feeds."""
    above, below = text.startswith("+"), text.endswith("+") and len(text) > 1
    return Selector(text, text[above : len(text) - below], above, below)


@dataclass(frozen=True)
class Selected:
    """What selectors mean, in their order."""

    nodes: tuple[NodeName, ...]
    queries: Mapping[str, frozenset[str]]
    """By pipeline, its queries that are meant."""


def select(graph: ProjectGraph, selectors: Sequence[Selector], files: Mapping[str, Sequence[Pipeline]]) -> Selected:
    """All that any of the selectors means. `files` are pipelines by the file that names them. Raises UserError."""
    nodes: dict[NodeName, None] = {}
    for selector in selectors:
        meant = _meant(selector, graph, files)
        order = graph.flowing_nodes if selector.looks_around else graph.nodes
        nodes |= dict.fromkeys(node for node in order if node in meant)
    queries: dict[str, frozenset[str]] = {}
    for name in dict.fromkeys(pipeline for pipeline, _ in nodes):
        pipeline = graph.by_name[name]
        asked = [query.name for query in pipeline.queries if (name, query.name) in nodes]
        if asked:
            queries[name] = with_dead_letters_of(pipeline, asked)
    return Selected(tuple(nodes), queries)


def require_queries(graph: ProjectGraph, selectors: Sequence[Selector], found: Selected) -> None:
    """Raises UserError if there is nothing to run: a step that feeds no sink runs only as a part of others."""
    if found.queries:
        return
    below = graph.descendants(found.nodes)
    made = [f"{pipeline}.{query}" for pipeline, query in graph.queries if (pipeline, query) in below]
    named = ", ".join(f"`{selector.text}`" for selector in selectors)
    fix = f"name a query that is made from it: {', '.join(made[:_SHOWN])}" if made else "feed a sink from it"
    raise UserError(Problem("PROJECT010", f"{named} feeds no sink, so no query writes it", fix))


def _meant(selector: Selector, graph: ProjectGraph, files: Mapping[str, Sequence[Pipeline]]) -> set[NodeName]:
    base = set(_base(selector, graph, files))
    around = set(base)
    if selector.above:
        around |= graph.ancestors(base)
    if selector.below:
        around |= graph.descendants(base)
    return around


def _base(selector: Selector, graph: ProjectGraph, files: Mapping[str, Sequence[Pipeline]]) -> Iterable[NodeName]:
    name = selector.base
    if name in files:
        return [(pipeline.name, node) for pipeline in files[name] for node in pipeline.nodes]
    if name.startswith(TAG):
        return _tagged(selector, graph)
    if name in graph.by_name:
        return [(name, node) for node in graph.by_name[name].nodes]
    owner, dot, node = name.partition(".")
    owners = ([graph.by_name[owner]] if owner in graph.by_name else []) if dot else list(graph.pipelines)
    found = list(_named(node if dot else name, owners))
    if not found:
        raise UserError(_unknown(selector, graph))
    if len(found) > 1:
        choices = ", ".join(f"{pipeline}.{one}" for pipeline, one in found)
        raise UserError(
            Problem("PROJECT004", f"`{name}` is in several pipelines", f"name one of: {choices}; or several of them")
        )
    return found


def _named(name: str, pipelines: Sequence[Pipeline]) -> Iterator[NodeName]:
    """Sources and steps of that name; else the steps that feed a sink of that name."""
    nodes = [(pipeline.name, name) for pipeline in pipelines if name in pipeline.nodes]
    sinks = [
        (pipeline.name, sink.of)
        for pipeline in pipelines
        for sink in pipeline.sinks
        if sink.name == name and sink.of in pipeline.nodes
    ]
    yield from dict.fromkeys(nodes or sinks)


def _tagged(selector: Selector, graph: ProjectGraph) -> list[NodeName]:
    tag = selector.base.removeprefix(TAG)
    tags = {node: graph.by_name[node[0]].tags_of(node[1]) for node in graph.nodes}
    found = [node for node, own in tags.items() if tag in own]
    if not found:
        known = sorted({one for own in tags.values() for one in own})
        near = get_close_matches(tag, known, n=3)
        mean = f" — did you mean {_listed([TAG + one for one in near])}?" if near else ""
        give = f"give it to a pipeline or a step: `tags: [{tag}]`"
        fix = f"name one of: {', '.join(known[:_SHOWN])}" if known else give
        raise UserError(Problem("PROJECT004", f"nothing has the tag `{tag}`{mean}", fix))
    return found


def _unknown(selector: Selector, graph: ProjectGraph) -> Problem:
    name = selector.base
    pipelines = list(graph.by_name)
    whole = [f"{pipeline}.{node}" for pipeline, node in graph.nodes]
    plain = sorted({node for _, node in graph.nodes})
    near = get_close_matches(name, list(dict.fromkeys((*pipelines, *(whole if "." in name else plain)))), n=3)
    mean = f" — did you mean {_listed(near)}?" if near else ""
    fix = f"name one of: {', '.join(pipelines) or 'none is declared'}; or a step of one, as `pipeline.step`"
    return Problem("PROJECT004", f"there is no pipeline or step `{name or selector.text}`{mean}", fix)


def _listed(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)
