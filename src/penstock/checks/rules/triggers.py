"""Triggers that end by themselves, and how much they take at once."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks import triggered
from penstock.checks.rule import Finding, Subject, rule


@rule(
    "TRIGGER001",
    "warning",
    wrong="""
    pipeline: nightly
    sources: {lines: {type: files, path: in, format: text, max_files_per_trigger: 100}}
    sinks: {out: {of: lines, type: console}}
    queries: {lines: {trigger: once}}
    """,
    right="""
    pipeline: nightly
    sources: {lines: {type: files, path: in, format: text, max_files_per_trigger: 100}}
    sinks: {out: {of: lines, type: console}}
    queries: {lines: {trigger: available_now}}
    """,
)
def once_is_deprecated(subject: Subject) -> Iterator[Finding]:
    """`once` takes everything in one batch, and Spark has deprecated it.

    `available_now` honours rate limits, moves the watermark from batch to batch and ends with a last empty batch.
    """
    for query in triggered.queries(subject, "once"):
        yield f"query `{query.name}` uses the trigger `once`", "use `available_now`", query.origin.at("trigger")


@rule(
    "TRIGGER002",
    "warning",
    wrong="""
    pipeline: nightly
    sources: {orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw}}
    sinks: {out: {of: orders, type: console}}
    queries: {orders: {trigger: available_now}}
    """,
    right="""
    pipeline: nightly
    sources: {orders: {type: kafka, servers: kafka:9092, topics: [orders], format: raw, max_offsets_per_trigger: 9999}}
    sinks: {out: {of: orders, type: console}}
    queries: {orders: {trigger: available_now}}
    """,
)
def no_limit(subject: Subject) -> Iterator[Finding]:
    """`available_now` without a limit takes everything in one batch.

    After a long pause that may be more than memory and disk can hold, and a failure begins it all again. With a limit
    it comes in several batches, each committed.
    """
    for query in triggered.queries(subject, "available_now"):
        for source in subject.pipeline.sources_of(query.name):
            key = {"kafka": "max_offsets_per_trigger", "files": "max_files_per_trigger"}.get(source.spec.type)
            limits = [name for name in type(source.spec).model_fields if name.startswith("max_") and "trigger" in name]
            if key and not source.spec.is_static and not any(getattr(source.spec, name) for name in limits):
                yield (
                    f"query `{query.name}` takes all that `{source.name}` has in one batch",
                    f"set `{key}` on the source",
                    source.origin.where,
                )
