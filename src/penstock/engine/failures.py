"""What Spark threw, as a typed value. This is the only place that looks at an exception of a query that failed.

`causes` judges, `failure_problems` words it. Here Spark is asked for what they need: the exceptions, the bad record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.dead_letters.bad_records import DECODED
from penstock.dead_letters.verdicts import SHOWN_CHARACTERS
from penstock.engine import failure_problems
from penstock.engine.causes import Cause, classify
from penstock.engine.failure_problems import FailedQuery, away_from, cause_of, problem_of
from penstock.engine.spark_problems import spark_is_gone
from penstock.facts.failure import MAY_PASS, Failure, Kind, RecordAt
from penstock.facts.thrown import Thrown
from penstock.notation.references import Mask
from penstock.pipeline.model import Pipeline, Query, Sink, Source, Step
from penstock.problems import Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KNOWN_BETTER: frozenset[Kind] = frozenset({"bad_record", "new_columns", "unknown_schema_id", "worker_died"})
"""What a sink cannot know about its failure: the rows themselves failed while it wrote them."""


@dataclass(frozen=True)
class OwnProblem:
    """The Problem that a sink or a source gave to its own failure."""

    problem: Problem
    sink: Sink | None = None
    is_away: bool = False
    """Does the Problem say that a service cannot be reached?"""


def failure_of(
    chain: tuple[Thrown, ...],
    query: Query,
    pipeline: Pipeline,
    session: SparkSession,
    mask: Mask,
    checkpoint: str,
    batch: int | None = None,
    told: OwnProblem | None = None,
) -> Failure:
    """Why a running query stopped. `chain` is what Spark, a sink or the user's code raised, with its causes."""
    cause = classify(chain)
    if cause.record is not None and cause.record.node not in pipeline.nodes:
        cause = replace(cause, kind="other", record=None)
    failed = FailedQuery(query, pipeline, checkpoint, cause, told.sink if told else None)
    if cause.record is not None:
        failure = _of_record(cause, cause.record, pipeline.nodes, session)
    elif told is not None and cause.kind not in _KNOWN_BETTER:
        failure = _of_told(told, cause)
    else:
        failure = Failure(_sided(failed), problem_of(failed), cause_of(cause), paths=cause.paths, columns=cause.columns)
    problem = replace(failure.problem, message=mask(failure.problem.message), fix=mask(failure.problem.fix))
    return replace(failure, problem=problem, batch=batch, condition=cause.link.condition)


def _sided(failed: FailedQuery) -> Kind:
    """Whether it is a source or a sink that is away, by the part that was found for it."""
    if failed.cause.kind not in ("source_away", "sink_away"):
        return failed.cause.kind
    node = away_from(failed)
    return failed.cause.kind if node is None else "source_away" if isinstance(node, Source) else "sink_away"


def _of_told(told: OwnProblem, cause: Cause) -> Failure:
    """The part's own Problem says most. What kind of failure it is shows in the exception behind it."""
    kind: Kind = cause.kind if cause.kind in MAY_PASS else "other"
    if told.is_away or kind in ("source_away", "sink_away"):
        kind = "sink_away" if told.sink is not None else "source_away"
    elif cause.kind == "user_code" and told.problem.code == "PYTHON001":
        kind = "user_code"
    return Failure(kind, told.problem, f"{told.problem.code} {cause_of(cause)}", paths=cause.paths)


def _of_record(cause: Cause, record: RecordAt, nodes: Mapping[str, Source | Step], session: SparkSession) -> Failure:
    node, kind, schema_id = nodes[record.node], cause.kind, None
    reads_again = isinstance(node, Source) and node.spec.declared_capabilities.rereads_records
    if isinstance(node, Source) and reads_again and record.check == DECODED:
        with contextlib.suppress(Exception):  # what cannot be read any more must not hide the failure itself
            if found := node.spec.reread(session, dict(record.place)):
                raw = None if found.raw is None else found.raw.decode(errors="replace")[:SHOWN_CHARACTERS]
                record = replace(record, reason=record.reason or found.reason, record=record.record or raw)
                schema_id = found.schema_id
    if schema_id is not None:
        kind, problem = "unknown_schema_id", failure_problems.of_schema_id(record, schema_id, node)
    else:
        problem = failure_problems.of_record(record, node)
    return Failure(kind, problem, cause_of(cause), record=record, schema_id=schema_id)


def spark_died(query: Query) -> Failure:
    """The JVM has ended under a running query. No restart helps: the process has no other JVM."""
    problem = spark_is_gone(query)
    return Failure("spark_died", problem, problem.message)
