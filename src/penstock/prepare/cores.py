"""The cores that queries hold, with what the services tell: the rule knows the text alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.checks import slots
from penstock.checks.rules.real_time import real_time_slots
from penstock.checks.slots import Held
from penstock.engine.build import Built
from penstock.engine.latency import PARTITIONS, Profile
from penstock.pipeline.model import Pipeline
from penstock.problems import Fault, Problem
from penstock.sources.source import SourceSpec


def held(pipeline: Pipeline, built: Built, profile: Profile) -> Held:
    """The cores of one query."""
    shuffled = int(profile.settings[PARTITIONS]) if built.is_stateful else 0
    return slots.held(pipeline, built.query, _partitions_now, shuffled)


def too_few(queries: Sequence[Held], cores: int) -> Iterator[Problem]:
    """What is wrong when they are started together, over all pipelines of a process."""
    for message, fix, where in slots.too_few(queries, cores):
        yield Problem(real_time_slots.code, message, fix, where)


def _partitions_now(source: SourceSpec) -> int | None:
    try:
        return source.partitions_now()
    except Fault:  # told where the source is probed
        return None
