"""Can a checkpoint be resumed as it lies there? Its own files, and its sinks, as findings of a plan. Heals nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.checkpoint import verify
from penstock.checkpoint.damage import stops
from penstock.checkpoint.generations import cannot_write
from penstock.facts.stored import CheckpointFacts
from penstock.pipeline.model import Pipeline, Query
from penstock.plan.sink_facts import progress_of, sink_facts
from penstock.plan.sinks import holding_findings
from penstock.plan.verdict import PlanFinding
from penstock.problems import Fault, Problem
from penstock.sinks.held import StorageFor
from penstock.sinks.sink import SinkSpec
from penstock.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def resumable_findings(
    pipeline: Pipeline,
    query: Query,
    known: CheckpointFacts,
    storage: Storage,
    storage_for: StorageFor,
    spark: SparkSession | None = None,
) -> list[PlanFinding]:
    """What is damaged in a checkpoint, and which sinks are ahead of it or are other ones. The pipeline is resolved.

    Without Spark no service is asked, so that sinks behind one are not judged.
    """
    name, where = f"{pipeline.name}.{query.name}", query.origin.where
    try:
        found = stops(verify.cheap(storage, known.path, name=name, identity=known.id))
        if found:
            return [_refused(query, damage.problem(where)) for damage in found]
    except OSError as error:
        return [_refused(query, cannot_write(known.path, error, query))]
    if spark is None and any(type(sink.spec).probe is not SinkSpec.probe for sink in query.sinks):
        return []
    return held_findings(pipeline, query, known, storage, storage_for, spark)


def held_findings(
    pipeline: Pipeline,
    query: Query,
    known: CheckpointFacts,
    storage: Storage,
    storage_for: StorageFor,
    spark: SparkSession | None = None,
) -> list[PlanFinding]:
    """Which sinks are ahead of a checkpoint, or are other ones than it was created with."""
    try:
        facts = sink_facts(pipeline, query, known, storage, storage_for, spark)
    except Fault as fault:
        return [_refused(query, fault.at(query.origin.where))]
    except OSError as error:
        return [_refused(query, cannot_write(known.path, error, query))]
    return holding_findings(progress_of(pipeline.name, query.name, known), facts)


def _refused(query: Query, problem: Problem) -> PlanFinding:
    return PlanFinding(problem.code, query.name, problem.message, problem.fix, "refuse", problem.where)
