"""Sinks against the checkpoint: does a sink hold more than the checkpoint knows, or is it another one? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.checkpoint.damage import reset_command
from penstock.plan.verdict import PlanFinding
from penstock.problems import Where


@dataclass(frozen=True)
class SinkFacts:
    """One sink of a query that has a checkpoint: what its place holds, and what is remembered of it."""

    sink: str
    kind: str
    """`files`, `delta`, `postgres` …"""
    place: str
    """The path or table, as a user knows it."""
    last_batch: int | None
    """The newest batch of this query that it holds."""
    identity: str | None = None
    """Of the table as it is now."""
    remembered: str | None = None
    """Of the table that the checkpoint was created with."""
    is_there: bool = True
    owner: str | None = None
    """The query whose log a folder holds, where that is known."""
    where: Where | None = None


@dataclass(frozen=True)
class CheckpointProgress:
    """How far a checkpoint is."""

    name: str
    """`pipeline.query`"""
    query_id: str
    last_commit: int | None
    last_offset: int | None
    path: str


def holding_findings(progress: CheckpointProgress, sinks: Iterable[SinkFacts]) -> list[PlanFinding]:
    return [finding for facts in sinks for finding in _of_one(progress, facts)]


def _of_one(progress: CheckpointProgress, facts: SinkFacts) -> Iterator[PlanFinding]:
    reset = reset_command(progress.name)
    if facts.owner is not None and facts.owner != progress.query_id and facts.last_batch is not None:
        yield PlanFinding(
            "LEDGER004",
            facts.sink,
            f"the folder `{facts.place}` of sink `{facts.sink}` holds the log of another query ({facts.owner}):"
            " Spark would skip each batch whose number is in that log",
            f"write to another folder, or run `{reset} --empty-output`",
            "refuse",
            facts.where,
            before=f"query {progress.query_id}",
            now=f"query {facts.owner}",
        )
        return
    begun = progress.last_commit is not None
    if begun and facts.remembered is not None and facts.remembered != facts.identity:
        gone = not facts.is_there or facts.identity is None
        yield PlanFinding(
            "LEDGER003",
            facts.sink,
            f"the table `{facts.place}` of sink `{facts.sink}` {'is gone' if gone else 'is another one now'}: the rows"
            f" of all batches up to {progress.last_commit} are not in it",
            f"restore the table, or write all rows again: `{reset}`; or give the sink another `table` or `path`",
            "restart",
            facts.where,
            before=facts.remembered,
            now=facts.identity or "no table",
        )
        return
    planned = -1 if progress.last_offset is None else progress.last_offset
    # Between the commit of a sink and Spark's own, a crash leaves the sink one batch ahead: the batch that is planned.
    if facts.last_batch is not None and facts.last_batch > planned:
        lost = facts.last_batch - planned
        yield PlanFinding(
            "LEDGER002",
            facts.sink,
            f"sink `{facts.sink}` (`{facts.place}`) has batch {facts.last_batch}, and its checkpoint"
            f" {f'ends with batch {planned}' if planned >= 0 else 'has no batch'}: the next"
            f" {f'{lost} batches' if lost > 1 else 'batch'} would be skipped, and the rows lost",
            f"restore a newer backup of `{progress.path}`, or write all rows again: `{reset}`",
            "refuse",
            facts.where,
            before=f"batch {planned}" if planned >= 0 else "no batch",
            now=f"batch {facts.last_batch}",
        )
