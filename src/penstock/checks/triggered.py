"""Queries by their trigger, and what the triggers that hand rows on have in common."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject
from penstock.facts.operators import Operator
from penstock.pipeline.model import Query
from penstock.query.triggers import Kind


def queries(subject: Subject, kind: Kind) -> Iterator[Query]:
    for query in subject.pipeline.queries:
        if query.trigger.kind == kind:
            yield query


def plans(subject: Subject, kind: Kind) -> Iterator[tuple[Query, Operator]]:
    for query, plan in subject.planned():
        if query.trigger.kind == kind:
            yield query, plan


def slower(query: Query) -> str:
    """The nearest that works everywhere."""
    return "`latency: low`, without the trigger" if query.settings.trigger else "`latency: low`"


def sinks_in_batches(subject: Subject, kind: Kind, taken: tuple[str, ...], *, by_row: bool) -> Iterator[Finding]:
    for query in queries(subject, kind):
        for sink in query.sinks:
            fits = sink.spec.type in taken or (by_row and getattr(sink.spec, "foreach", None) is not None)
            if len(query.sinks) > 1 or sink.spec.batch_sql or not fits:
                how = "continuous" if kind == "continuous" else "real-time"
                yield (
                    f"sink `{sink.name}` ({sink.spec.type}) of the {how} query `{query.name}` is written in batches",
                    f"write to `kafka` and let another query take it from there; or use {slower(query)}",
                    sink.origin.where,
                )
