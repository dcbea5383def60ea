"""State stores: keys that contradict each other, or stand in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.query.state_store import OF_PROCESS, contradictions, merged


def _counted(state: str) -> str:
    return f"""
    pipeline: counted
    sources: {{ticks: {{type: rate}}}}
    steps: {{counts: {{sql: "SELECT value % 3 AS third, count(*) AS n FROM ticks GROUP BY value % 3"}}}}
    sinks: {{out: {{of: counts, type: console}}}}
    queries: {{counts: {{mode: complete, state: {{{state}}}}}}}
    """


@rule(
    "STORE001",
    guide="State Store",
    wrong=_counted("store: hdfs, format: 2"),
    right=_counted("store: rocksdb, changelog: false"),
)
def state_contradicts_itself(subject: Subject) -> Iterator[Finding]:
    """Keys of `state` do not go together.

    A query's `state` is put on top of the project's. Checkpoints of format 2 and all the tuning of RocksDB need
    RocksDB; a share of the bounded memory needs the bound. Spark would ignore some, and fail on others in the first
    batch.
    """
    of_project, origin = subject.project.state, subject.project.origin
    fix = "change one of the two, in the query or in penstock.yaml"
    for key, needed in contradictions(merged(of_project, None)):
        yield f"`{key}` in `state` of penstock.yaml needs `{needed}`", fix, origin.at("state", key)
    for query in subject.pipeline.queries:
        own = query.settings.state
        for key, needed in contradictions(merged(of_project, own)) if own else ():
            if key not in OF_PROCESS:
                yield f"`{key}` in the state of `{query.name}` needs `{needed}`", fix, query.origin.at("state", key)


@rule(
    "STORE002",
    guide="RocksDB State Store Memory Management",
    wrong=_counted("bounded_memory: true"),
    right=_counted("block_cache_size_mb: 16"),
)
def memory_of_one_query(subject: Subject) -> Iterator[Finding]:
    """A query bounds the memory that all queries share.

    All stores of a process share one bound: the first query to open a store would decide for all.
    """
    for query in subject.pipeline.queries:
        for key in OF_PROCESS if query.settings.state else ():
            if getattr(query.settings.state, key) is not None:
                yield (
                    f"`{key}` of query `{query.name}` would count for all queries of the process",
                    "set it in `state` of penstock.yaml",
                    query.origin.at("state", key),
                )
