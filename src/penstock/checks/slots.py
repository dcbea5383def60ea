"""The cores that queries hold for as long as they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from penstock.checks.rule import Finding
from penstock.pipeline.model import Pipeline, Query
from penstock.problems import Where
from penstock.sources.source import SourceSpec


@dataclass(frozen=True)
class Held:
    """A query that runs beside others, and the cores that it holds; 0 for one that takes turns with others."""

    query: str
    cores: int
    where: Where


def held(pipeline: Pipeline, query: Query, partitions: Callable[[SourceSpec], int | None], shuffled: int = 0) -> Held:
    """A query in continuous or real time holds a core for each partition of its sources, and of its shuffle.

    `partitions` tells those of a source, or None where they are not known: one at least.
    """
    cores = 0
    if query.trigger.emits_early:
        read = (source.spec for source in pipeline.sources_of(query.name) if not source.spec.is_static)
        cores = shuffled + sum(partitions(spec) or 1 for spec in read)
    return Held(query.name, cores, pipeline.place_of_trigger(query))


def too_few(queries: Sequence[Held], cores: int) -> Iterator[Finding]:
    """What is wrong when they are started together."""
    holding = [one for one in queries if one.cores]
    turns = 1 if len(holding) < len(queries) else 0
    needed = sum(one.cores for one in holding) + turns
    if holding and needed > cores:
        each = ", ".join(f"`{one.query}` {one.cores}" for one in holding)
        more = ", and the others need one to take turns on" if turns else ""
        yield (
            f"{needed} cores are needed, and there are {cores}: for as long as they run, {each}{more}",
            "give Spark more cores, run fewer of them in one process, or use `latency: low`",
            holding[-1].where,
        )
