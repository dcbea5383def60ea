"""Steps with state of their own."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.query.state_store import merged
from penstock.transforms.process import Process


@rule(
    "PROCESS004",
    wrong="""
    pipeline: fraud
    sources: {payments: {type: rate}}
    steps: {scored: {process: {of: payments, key: [value], with: "fraud:Velocity"}}}
    sinks: {out: {of: scored, type: console}}
    """,
    right="""
    pipeline: fraud
    sources: {payments: {type: rate}}
    steps: {scored: {process: {of: payments, key: [value], with: "fraud:Velocity", output: "value LONG, score DOUBLE"}}}
    sinks: {out: {of: scored, type: console}}
    """,
)
def no_columns(subject: Subject) -> Iterator[Finding]:
    """A step with state does not say which columns it gives, or keeps.

    Spark must know the columns before it has seen a row: names with their types, as DDL. Only a ready-made processor
    knows its own.
    """
    for step in subject.pipeline.steps:
        if isinstance(step.spec, Process) and not step.spec.process.is_ready_made and not step.spec.process.output:
            yield (
                f"step `{step.name}` does not say which columns it gives",
                "add `output:` with the columns and their types: `output: card_id STRING, score DOUBLE`",
                step.origin.at("process"),
            )


@rule(
    "PROCESS005",
    wrong="""
    pipeline: fraud
    sources: {payments: {type: rate}, known: {type: rate}}
    steps:
      scored: {process: {of: payments, key: [value], with: "fraud:Velocity", output: value LONG, initial: known}}
    sinks: {out: {of: scored, type: console}}
    """,
    right="""
    pipeline: fraud
    sources:
      payments: {type: rate}
      known: {type: files, path: known, format: {type: csv, schema: value LONG}, read: static}
    steps:
      scored: {process: {of: payments, key: [value], with: "fraud:Velocity", output: value LONG, initial: known}}
    sinks: {out: {of: scored, type: console}}
    """,
)
def initial_state_streams(subject: Subject) -> Iterator[Finding]:
    """The initial state is a stream.

    It is read once, whole, when a checkpoint is new. A stream is never whole.
    """
    for step in subject.pipeline.steps:
        initial = step.spec.process.initial if isinstance(step.spec, Process) else None
        for source in subject.pipeline.sources_of(initial) if initial else ():
            if not source.spec.is_static:
                made = "" if source.name == initial else f", made from `{source.name}`"
                yield (
                    f"the initial state `{initial}` of `{step.name}` is a stream{made}",
                    f"read `{source.name}` with `read: static`",
                    step.origin.at("process", "initial"),
                )


@rule(
    "PROCESS006",
    wrong="""
    pipeline: fraud
    sources: {payments: {type: rate}}
    steps: {scored: {process: {of: payments, key: [value], with: "fraud:Velocity", output: value LONG}}}
    sinks: {out: {of: scored, type: console}}
    queries: {scored: {state: {store: hdfs}}}
    """,
    right="""
    pipeline: fraud
    sources: {payments: {type: rate}}
    steps: {scored: {process: {of: payments, key: [value], with: "fraud:Velocity", output: value LONG}}}
    sinks: {out: {of: scored, type: console}}
    """,
)
def store_without_families(subject: Subject) -> Iterator[Finding]:
    """A `process` step needs the RocksDB state store.

    Its state variables and timers each have a part of the store to themselves, which the HDFS-backed store cannot give.
    """
    for query in subject.pipeline.queries:
        steps = [node.name for node in subject.pipeline.upstream(query.name) if isinstance(node.spec, Process)]
        if steps and merged(subject.project.state, query.settings.state).store == "hdfs":
            own = query.settings.state is not None and "store" in query.settings.state.model_fields_set
            yield (
                f"`{steps[0]}` cannot keep its state in the store `hdfs`",
                "use `store: rocksdb`, which is the default",
                (query if own else subject.project).origin.at("state", "store"),
            )
