"""What Spark accepts and people regret: in settings, secrets, and tables that change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.checks.rule import Finding, Subject, rule
from penstock.facts.streams import keeps_state
from penstock.notation.references import has_reference
from penstock.pipeline.model import Sink, Source
from penstock.spec import Spec

_SECRET = re.compile(r"password|passwd|secret|token|api_?key|access_?key|sasl\.jaas", re.IGNORECASE)
_LOGIN_IN_URL = re.compile(r"://[^/\s:@]+:[^/\s@]+@|[?&]password=[^&\s]+", re.IGNORECASE)
_PARTITIONS = "spark.sql.shuffle.partitions"
_MANY_TIMES = 16


@rule(
    "SECRET001",
    "warning",
    wrong="""
    pipeline: open
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: postgres, url: "postgresql://shop:hunter2@db/shop", table: ticks}}
    """,
    right="""
    pipeline: closed
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: postgres, url: "postgresql://shop:${PG_PASSWORD}@db/shop", table: ticks}}
    """,
)
def written_secret(subject: Subject) -> Iterator[Finding]:
    """A secret stands in the file.

    Whoever can read the repository has it, today and in its history. A variable keeps it out, and Penstock masks what
    it stands for in everything that it prints.
    """
    for node in () if subject.resolved else (*subject.pipeline.sources, *subject.pipeline.sinks):
        for keys, value in _texts(node.spec):
            if has_reference(value) or not value:
                continue
            if _SECRET.search(keys[-1]) or _LOGIN_IN_URL.search(value):
                yield (
                    f"`{keys[-1]}` of `{node.name}` holds a secret in plain text",
                    "put it into a variable: `${PASSWORD}`, and name that under `secrets:` in penstock.yaml",
                    node.origin.at(*keys),
                )


def _texts(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Spec):
        value = {key: getattr(value, key) for key in value.model_fields_set}
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, (*keys, str(key)))
    elif isinstance(value, str) and keys:
        yield keys, value


@rule(
    "QUERY003",
    "warning",
    wrong="""
    pipeline: scattered
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {counts: {sql: "SELECT count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {spark: {spark.sql.shuffle.partitions: 20000}}}
    """,
    right="""
    pipeline: gathered
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute}}}
    steps: {counts: {sql: "SELECT count(*) AS n FROM ticks GROUP BY window(timestamp, '1 minute')"}}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {spark: {spark.sql.shuffle.partitions: 4}}}
    """,
)
def many_partitions(subject: Subject) -> Iterator[Finding]:
    """A query has many more shuffle partitions than there are cores.

    Each is a task and a state store for every batch, however small. On one machine 200 of them take seconds a batch.
    The number is fixed when the checkpoint is born.
    """
    for query in subject.pipeline.queries:
        written = str(query.settings.spark.get(_PARTITIONS, ""))
        if written.isdigit() and int(written) > subject.slots * _MANY_TIMES:
            yield (
                f"query `{query.name}` has {int(written):,} shuffle partitions for {subject.slots} cores",
                "use about as many as there are cores, or leave it out: Penstock does",
                query.origin.at("spark", _PARTITIONS),
            )


@rule(
    "SOURCE002",
    wrong="""
    pipeline: chained
    sources:
      ticks: {type: rate}
      totals: {type: delta, path: out/totals}
    sinks:
      upserted: {of: ticks, type: delta, path: out/totals, write: upsert, keys: [value], latest_by: timestamp}
      copied: {of: totals, type: console}
    queries: {ticks: {mode: update}}
    """,
    right="""
    pipeline: chained
    sources:
      ticks: {type: rate}
      totals: {type: delta, path: out/totals, change_feed: true}
    sinks:
      upserted: {of: ticks, type: delta, path: out/totals, write: upsert, keys: [value], latest_by: timestamp}
      copied: {of: totals, type: console}
    queries: {ticks: {mode: update}}
    """,
)
def table_that_changes(subject: Subject) -> Iterator[Finding]:
    """A stream reads a table whose rows are changed by a sink of the project.

    A stream of a Delta or Iceberg table expects rows to be added. The first commit that changes one stops the query.
    """
    sinks = [sink for pipeline in (subject.pipeline, *subject.others) for sink in pipeline.sinks]
    changed = [sink for sink in sinks if getattr(sink.spec, "writes", None) in ("upsert", "overwrite")]
    for source in subject.pipeline.sources:
        if source.spec.type not in ("delta", "iceberg") or source.spec.is_static or _takes_changes(source):
            continue
        writers = [sink.name for sink in changed if _same_table(source, sink, subject)]
        if writers:
            yield (
                f"source `{source.name}` reads as a stream what sink `{writers[0]}` changes",
                "read the changes with `change_feed: true`, or pass over them with `skip_change_commits: true`"
                if source.spec.type == "delta"
                else "pass over changes with `skip_overwrite_snapshots: true`",
                source.origin.where,
            )


_TAKES = ("change_feed", "skip_change_commits", "ignore_changes", "skip_overwrite_snapshots")


def _takes_changes(source: Source) -> bool:
    return any(getattr(source.spec, key, False) for key in _TAKES)


def _same_table(source: Source, sink: Sink, subject: Subject) -> bool:
    if source.spec.type != sink.spec.type:
        return False
    table, path = (getattr(source.spec, key, None) for key in ("table", "path"))
    if table:
        return bool(table == getattr(sink.spec, "table", None))
    other = getattr(sink.spec, "path", None)
    return bool(path and other and subject.path(path).rstrip("/") == subject.path(other).rstrip("/"))


@rule(
    "LIMIT001",
    "warning",
    needs="plan",
    guide="Unsupported Operations",
    wrong="""
    pipeline: first_ones
    sources: {ticks: {type: rate}}
    steps: {few: {sql: SELECT * FROM ticks LIMIT 10}}
    sinks: {out: {of: few, type: console}}
    """,
    right="""
    pipeline: first_ones
    sources: {ticks: {type: rate}}
    steps: {few: {sql: SELECT * FROM ticks WHERE value < 10}}
    sinks: {out: {of: few, type: console}}
    """,
)
def limit_for_ever(subject: Subject) -> Iterator[Finding]:
    """A limit counts over the whole life of a query.

    After the tenth row nothing comes any more, in this run or in any later one, and the query goes on reading.
    """
    for query, plan in subject.planned():
        for operator in plan.walk() if query.settings.mode == "append" else ():
            if operator.kind == "limit" and operator.is_streaming and keeps_state(operator):
                yield (
                    f"query `{query.name}` gives no more rows once its limit is reached, for ever",
                    "leave rows out with a condition",
                    query.origin.where,
                )
                break


@rule(
    "SINK009",
    "warning",
    needs="disk",
    guide="Using Foreach and ForeachBatch",
    wrong="A function of `each_batch` that writes rows and never looks at the batch that it gets.",
    right="One that writes inside `batch.once(…)`, or under `batch.number`; or a sink with a ledger, such as `delta`.",
)
def batch_written_twice(subject: Subject) -> Iterator[Finding]:
    """A function for batches writes rows and does not look at the batch.

    After a crash the same batch comes again, with the same number. A function that does not ask which batch it has
    writes its rows a second time; one that writes to two places may have written to one of them only.
    """
    for sink in subject.pipeline.sinks:
        code = subject.disk.batch_code.get(sink.name)
        if code is not None and code.writes and not code.uses_batch:
            yield (
                f"the function of sink `{sink.name}` writes, and never looks at its batch: a batch that is run again is"
                " written again",
                "write inside `batch.once(…)`, or use a sink with a ledger, such as `delta` or `postgres`",
                sink.origin.at("each_batch"),
            )
