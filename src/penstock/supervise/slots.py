"""The cores that queries hold for as long as they run, summed over all queries of a process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.engine.build import Built
from penstock.engine.latency import PARTITIONS, Profile
from penstock.pipeline.model import Pipeline
from penstock.problems import Fault, Problem, Where


@dataclass(frozen=True)
class Held:
    """A query that runs beside others, and the cores that it holds; 0 for one that takes turns with others."""

    query: str
    cores: int
    where: Where


def held(pipeline: Pipeline, built: Built, profile: Profile) -> Held:
    """A query in continuous or real time holds a core for each partition of its sources, and of its shuffle."""
    query = built.query
    where = pipeline.place_of_trigger(query)
    if not profile.trigger.hands_on:
        return Held(query.name, 0, where)
    read = 0
    for source in pipeline.sources_of(query.name):
        try:
            read += 0 if source.spec.is_static else source.spec.partitions_now() or 1
        except Fault:  # told where the source is probed
            read += 1
    shuffled = int(profile.settings[PARTITIONS]) if built.is_stateful else 0
    return Held(query.name, read + shuffled, where)


def too_few(queries: Sequence[Held], cores: int) -> Iterator[Problem]:
    """What is wrong when they are started together. Pure."""
    holding = [one for one in queries if one.cores]
    turns = 1 if len(holding) < len(queries) else 0
    needed = sum(one.cores for one in holding) + turns
    if holding and needed > cores:
        each = ", ".join(f"`{one.query}` {one.cores}" for one in holding)
        more = ", and the others need one to take turns on" if turns else ""
        yield Problem(
            "REALTIME008",
            f"{needed} cores are needed, and there are {cores}: for as long as they run, {each}{more}",
            "give Spark more cores, run fewer of them in one process, or use `latency: low`",
            holding[-1].where,
        )
