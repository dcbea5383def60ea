"""Pipelines that feed each other through tables, folders and topics."""

from __future__ import annotations

import os
from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.graph.joining import StorePlace, is_same, place_of
from penstock.graph.project_graph import Joint
from penstock.pipeline.model import Pipeline, Sink
from penstock.sources.files import Files


@rule(
    "CHAIN001",
    wrong="""
    pipeline: circle
    sources: {orders: {type: delta, path: out/orders}}
    steps: {doubled: {sql: SELECT id * 2 AS id FROM orders}}
    sinks: {orders_table: {of: doubled, type: delta, path: out/orders}}
    """,
    right="""
    pipeline: line
    sources: {orders: {type: delta, path: out/orders}}
    steps: {doubled: {sql: SELECT id * 2 AS id FROM orders}}
    sinks: {doubled_table: {of: doubled, type: delta, path: out/doubled}}
    """,
)
def rows_go_round(subject: Subject) -> Iterator[Finding]:
    """Queries feed each other in a circle.

    Each row that one writes comes back to it through the others, again and again, and the tables grow without limit.
    There is no order either in which `run --once` could take them. A table that is read as a whole (`read: static`)
    closes no circle.
    """
    for loop in subject.joined.loops():
        own = [joint for joint in loop if joint.reader[0] == subject.pipeline.name]
        if own and not _through_kafka(loop) and not _told_of_files(loop):
            yield (
                f"rows come back to where they were written: {_way(loop)}",
                f"write `{own[0].place.shown}` to another place, read it with `read: static`, or remove one of the"
                " sources",
                own[0].source.origin.where,
            )


@rule(
    "CHAIN002",
    "warning",
    wrong="""
    pipeline: retries
    sources:
      orders: {type: kafka, servers: "localhost:9092", topics: [orders, retries], starting: earliest, format: text}
    steps: {failed: {sql: SELECT value FROM orders WHERE value LIKE '%failed%'}}
    sinks: {again: {of: failed, type: kafka, servers: "localhost:9092", topic: retries, format: text}}
    """,
    right="""
    pipeline: retries
    sources: {orders: {type: kafka, servers: "localhost:9092", topics: [orders], starting: earliest, format: text}}
    steps: {failed: {sql: SELECT value FROM orders WHERE value LIKE '%failed%'}}
    sinks: {again: {of: failed, type: kafka, servers: "localhost:9092", topic: retries, format: text}}
    """,
)
def records_go_round(subject: Subject) -> Iterator[Finding]:
    """Queries feed each other in a circle through a Kafka topic.

    A topic for retries is made so, and works in a live run as long as each record leaves the circle after some rounds:
    count the rounds in a column or a header. `run --once` runs such queries together. What they write back in that run
    is read by the next one.
    """
    for loop in subject.joined.loops():
        own = [joint for joint in loop if joint.reader[0] == subject.pipeline.name]
        if own and _through_kafka(loop):
            yield (
                f"records come back to where they were written: {_way(loop)}",
                "let each record leave the circle after some rounds: filter by a column that counts them",
                own[0].source.origin.where,
            )


@rule(
    "CHAIN003",
    wrong="""
    pipeline: two_writers
    sources: {ticks: {type: rate}}
    steps: {odd: {sql: SELECT * FROM ticks WHERE value % 2 = 1}}
    sinks:
      every_one: {of: ticks, type: delta, table: shop.ticks}
      odd_ones: {of: odd, type: delta, table: shop.ticks}
    """,
    right="""
    pipeline: two_writers
    sources: {ticks: {type: rate}}
    steps: {odd: {sql: SELECT * FROM ticks WHERE value % 2 = 1}}
    sinks:
      every_one: {of: ticks, type: delta, table: shop.ticks}
      odd_ones: {of: odd, type: delta, table: shop.odd_ticks}
    """,
)
def two_writers_of_a_table(subject: Subject) -> Iterator[Finding]:
    """Two queries write into one table.

    Neither knows of the other: an upsert or overwrite of one undoes what the other has written, their commits run into
    conflicts, and a reader cannot tell whose rows it gets. Bring the rows together in one step (`UNION ALL`), and write
    that. A Kafka topic and a table of a database may have many writers.
    """
    ours = list(_tables_of(subject.pipeline, subject))
    theirs = [one for pipeline in subject.others for one in _tables_of(pipeline, subject)]
    for number, (pipeline, sink, place) in enumerate(ours):
        for owner, other, same in (*ours[:number], *theirs):
            of_one_query = owner is pipeline and other.of == sink.of  # SINK006 tells of those
            if is_same(place, same) and not of_one_query:
                yield (
                    f"sink `{sink.name}` and sink `{other.name}` of `{owner.name}` ({other.origin.where}) write into"
                    f" one table: `{place.shown}`",
                    "give each a table of its own, or bring the rows together in one step and write that",
                    sink.origin.at("table"),
                )
                break


def _tables_of(pipeline: Pipeline, subject: Subject) -> Iterator[tuple[Pipeline, Sink, StorePlace]]:
    environ = subject.project.values(os.environ)
    for sink in pipeline.sinks:
        for store in sink.spec.stores:
            if store.kind == "table":  # of folders SINK003 tells
                yield pipeline, sink, place_of(store, subject.project, environ)


def _through_kafka(loop: tuple[Joint, ...]) -> bool:
    return any(joint.place.kind == "topic" for joint in loop)


def _told_of_files(loop: tuple[Joint, ...]) -> bool:
    """FILES003 tells of a pipeline whose files come back to it."""
    return any(joint.reader[0] == joint.writer[0] and isinstance(joint.source.spec, Files) for joint in loop)


def _way(loop: tuple[Joint, ...]) -> str:
    """Each sink and source on the way, with its place."""
    return "; ".join(
        f"`{joint.writer[0]}` writes `{joint.place.shown}` ({joint.sink.origin.where}) and `{joint.reader[0]}` reads it"
        f" ({joint.source.origin.where})"
        for joint in loop
    )
