"""Queries: their sources, sinks, modes, triggers and settings."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.notation.paths import matches
from penstock.notation.references import has_reference
from penstock.problems import did_you_mean
from penstock.sinks.table import Table


@rule(
    "SINK001",
    kind="start",
    guide="Output Sinks",
    wrong="""
    pipeline: totals
    sources: {ticks: {type: rate}}
    steps: {total: {sql: SELECT count(*) AS ticks FROM ticks}}
    sinks: {out: {of: total, type: files, path: out, format: parquet}}
    queries: {total: {mode: complete}}
    """,
    right="""
    pipeline: totals
    sources: {ticks: {type: rate}}
    steps: {total: {sql: SELECT count(*) AS ticks FROM ticks}}
    sinks: {out: {of: total, type: memory}}
    queries: {total: {mode: complete}}
    """,
)
def mode_not_for_sink(subject: Subject) -> Iterator[Finding]:
    """A sink cannot take the query's output mode.

    Files are only ever added to, so they take `append`: rows that are final. `update` and `complete` change rows.
    """
    for query in subject.pipeline.queries:
        for sink in query.sinks:
            # In real time there is one mode alone: what else stands in the way is told by REALTIME003.
            if (
                query.settings.mode not in sink.spec.declared_capabilities.output_modes
                and query.trigger.kind != "real_time"
            ):
                taken = " or ".join(f"`{mode}`" for mode in sorted(sink.spec.declared_capabilities.output_modes))
                yield (
                    f"sink `{sink.name}` of type `{sink.spec.type}` does not take mode `{query.settings.mode}`",
                    f"use mode {taken}, with a watermark if the query aggregates, or another sink",
                    query.origin.at("mode"),
                )


@rule(
    "SINK002",
    wrong="""
    pipeline: both
    sources: {ticks: {type: rate}}
    sinks:
      screen: {of: ticks, type: console}
      folder: {of: ticks, type: files, path: out, format: json}
    """,
    right="""
    pipeline: both
    sources: {ticks: {type: rate}}
    steps: {stored: {sql: SELECT * FROM ticks}}
    sinks:
      screen: {of: ticks, type: console}
      folder: {of: stored, type: files, path: out, format: json}
    """,
)
def cannot_share(subject: Subject) -> Iterator[Finding]:
    """A sink that cannot share a query is fed from the same step as another.

    Spark's file sink keeps its own log of what it wrote and cannot be asked to write one batch. A second step makes a
    second query, with a checkpoint of its own.
    """
    for query in subject.pipeline.queries:
        for sink in query.sinks if len(query.sinks) > 1 else ():
            if not sink.spec.declared_capabilities.shares_query:
                yield (
                    f"sink `{sink.name}` of type `{sink.spec.type}` cannot share the query `{query.name}`",
                    f"add a step `{query.name}_{sink.name}: {{sql: SELECT * FROM {query.name}}}`"
                    f" and feed `{sink.name}` from it",
                    sink.origin.at("of"),
                )


@rule(
    "SINK006",
    wrong="""
    pipeline: twice
    sources: {ticks: {type: rate}}
    sinks:
      all: {of: ticks, type: delta, table: lake.shop.ticks}
      sums: {of: ticks, type: delta, table: lake.shop.ticks, batch_sql: SELECT max(value) AS value FROM batch}
    """,
    right="""
    pipeline: twice
    sources: {ticks: {type: rate}}
    sinks:
      all: {of: ticks, type: delta, table: lake.shop.ticks}
      sums: {of: ticks, type: delta, table: lake.shop.highest, batch_sql: SELECT max(value) AS value FROM batch}
    """,
)
def two_sinks_of_a_query_into_one_table(subject: Subject) -> Iterator[Finding]:
    """Two sinks of one query write into one table.

    A table knows a batch by its query and number. It takes the second write for a repetition of the first, and passes
    over it in silence.
    """
    for query in subject.pipeline.queries:
        seen: dict[tuple[str, str, str], str] = {}
        for sink in query.sinks:
            target = getattr(sink.spec, "table", None)  # of folders another rule tells
            if target is None:
                continue
            key = (sink.spec.type, getattr(sink.spec, "url", None) or "", target)
            if key in seen:
                yield (
                    f"sinks `{seen[key]}` and `{sink.name}` of query `{query.name}` write into one table: `{target}`",
                    "give each a table of its own, or feed one of them from a step of its own",
                    sink.origin.at("table"),
                )
            seen.setdefault(key, sink.name)


@rule(
    "SINK007",
    wrong="""
    pipeline: summed
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: files, path: out, format: json, batch_sql: SELECT count(*) AS n FROM batch}}
    """,
    right="""
    pipeline: summed
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console, batch_sql: SELECT count(*) AS n FROM batch}}
    """,
)
def no_sql_over_batches(subject: Subject) -> Iterator[Finding]:
    """A sink cannot write a SQL over the batch.

    Spark's own sink writes the rows of the query, and only those.
    """
    for sink in subject.pipeline.sinks:
        if sink.spec.batch_sql is not None and not sink.spec.declared_capabilities.shares_query:
            yield (
                f"sink `{sink.name}` of type `{sink.spec.type}` cannot have `batch_sql`",
                "write to another type of sink, such as `delta`, or aggregate in a step",
                sink.origin.at("batch_sql"),
            )


@rule(
    "SINK003",
    wrong="""
    pipeline: crowd
    sources: {ticks: {type: rate}}
    steps: {odd: {sql: SELECT * FROM ticks WHERE value % 2 = 1}}
    sinks:
      every_one: {of: ticks, type: files, path: out, format: json}
      odd_ones: {of: odd, type: files, path: out, format: json}
    """,
    right="""
    pipeline: room
    sources: {ticks: {type: rate}}
    steps: {odd: {sql: SELECT * FROM ticks WHERE value % 2 = 1}}
    sinks:
      every_one: {of: ticks, type: files, path: out/all, format: json}
      odd_ones: {of: odd, type: files, path: out/odd, format: json}
    """,
)
def two_sinks_one_folder(subject: Subject) -> Iterator[Finding]:
    """Two sinks write into one folder.

    Each keeps its own log of the folder and takes the other's files for rubbish; readers then miss rows.
    """
    sinks = [
        (pipeline.name, sink, path)
        for pipeline in (subject.pipeline, *subject.others)
        for sink in pipeline.sinks
        if (path := getattr(sink.spec, "path", None)) and not has_reference(path)
    ]
    for index, (pipeline_name, sink, path) in enumerate(sinks):
        if pipeline_name != subject.pipeline.name:
            continue
        earlier = [(n, s) for n, s, p in (*sinks[:index], *(x for x in sinks[index + 1 :] if x[0] != pipeline_name))
                   if matches(subject.path(p), subject.path(path))]  # fmt: skip
        if earlier:
            owner, other = earlier[0]
            of_other = f" of `{owner}`" if owner != pipeline_name else ""
            yield (
                f"sinks `{other.name}`{of_other} ({other.origin.where}) and `{sink.name}` write into one folder:"
                f" `{path}`",
                "give each sink a folder of its own",
                sink.origin.at("path"),
            )


@rule(
    "SINK004",
    wrong="""
    pipeline: forgetful
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: table, table: ticks_seen}}
    """,
    right="""
    pipeline: lasting
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: files, path: out, format: parquet}}
    """,
)
def table_is_forgotten(subject: Subject) -> Iterator[Finding]:
    """A table is made in a catalog that forgets it.

    Without a catalog in `penstock.yaml`, Spark keeps its list of tables in memory. After the process has ended, the
    files are there and the table is not, and the next run is refused.
    """
    lasting = {name for name, catalog in subject.project.catalogs.items() if catalog.type != "hive"}
    hive = len(lasting) < len(subject.project.catalogs) or "spark.sql.catalogImplementation" in subject.project.spark
    for sink in subject.pipeline.sinks:
        if isinstance(sink.spec, Table) and not hive and sink.spec.table.partition(".")[0] not in lasting:
            yield (
                f"the table `{sink.spec.table}` of sink `{sink.name}` is forgotten when the process ends",
                "declare a catalog in penstock.yaml (`catalogs: {spark_catalog: {type: hive}}`),"
                " or write with `type: files`",
                sink.origin.at("table"),
            )


@rule(
    "SINK008",
    wrong="""
    pipeline: grows
    sources: {orders: {type: files, path: in, format: parquet, on_new_columns: add}}
    sinks: {out: {of: orders, type: files, path: out, format: parquet}}
    """,
    right="""
    pipeline: grows
    sources: {orders: {type: files, path: in, format: parquet, on_new_columns: add}}
    sinks: {out: {of: orders, type: delta, path: out}}
    """,
)
def living_parquet_into_files(subject: Subject) -> Iterator[Finding]:
    """A sink cannot wait until the batch was looked at.

    New columns of Parquet files are found in their footers before a batch is written. Spark's own file sink writes
    without asking.
    """
    for query in subject.pipeline.queries:
        sources = [
            source
            for source in subject.pipeline.sources_of(query.name)
            if source.spec.declared_capabilities.checks_batches
        ]
        for sink in query.sinks if sources else ():
            if not sink.spec.declared_capabilities.shares_query:
                yield (
                    f"sink `{sink.name}` of type `{sink.spec.type}` cannot take the batches of `{sources[0].name}`,"
                    " whose Parquet schema lives",
                    "write to `delta`, or give the source a fixed `schema`",
                    sink.origin.at("type"),
                )


@rule(
    "SOURCE001",
    "warning",
    wrong="""
    pipeline: wire
    sources: {lines: {type: socket, host: localhost, port: 9999}}
    sinks: {out: {of: lines, type: files, path: out, format: text}}
    """,
    right="""
    pipeline: folder
    sources: {lines: {type: files, path: in, format: text}}
    sinks: {out: {of: lines, type: files, path: out, format: text}}
    """,
)
def not_replayable(subject: Subject) -> Iterator[Finding]:
    """A source cannot be read again after a crash.

    Rows that were read and not yet written are lost then, whatever the sink promises. Good for learning only. Each run
    begins anew, without a checkpoint.
    """
    for source in subject.pipeline.sources:
        if not source.spec.declared_capabilities.replayable:
            sinks = [sink for sink in subject.pipeline.sinks if source in subject.pipeline.upstream(sink.of)]
            if any(sink.spec.declared_capabilities.guarantee.promise != "none" for sink in sinks):
                yield (
                    f"source `{source.name}` of type `{source.spec.type}` cannot be replayed: a crash loses rows",
                    "read from Kafka or files where rows matter",
                    source.origin.at("type"),
                )


@rule(
    "QUERY001",
    wrong="""
    pipeline: private
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console}}
    queries: {ticks: {spark: {spark.driver.memory: 4g}}}
    """,
    right="""
    pipeline: private
    sources: {ticks: {type: rate}}
    sinks: {out: {of: ticks, type: console}}
    queries: {ticks: {spark: {spark.sql.shuffle.partitions: 4}}}
    """,
)
def setting_of_the_process(subject: Subject) -> Iterator[Finding]:
    """A query sets what belongs to the whole process.

    Queries run in sessions of one Spark. Only settings that start with `spark.sql.` differ from session to session.
    """
    for query in subject.pipeline.queries:
        for key in query.settings.spark:
            if not key.startswith("spark.sql."):
                yield (
                    f"`{key}` belongs to the process, not to query `{query.name}`",
                    "set it under `spark:` in penstock.yaml",
                    query.origin.at("spark", key),
                )


@rule(
    "PROJECT005",
    wrong="""
    pipeline: afar
    sources: {events: {type: spark, format: kafka, connection: brokr, spark_options: {subscribe: events}}}
    sinks: {out: {of: events, type: console}}
    """,
    right="""
    pipeline: afar
    sources: {events: {type: spark, format: kafka, spark_options: {subscribe: events}}}
    sinks: {out: {of: events, type: console}}
    """,
)
def unknown_connection(subject: Subject) -> Iterator[Finding]:
    """A source or sink names a connection that the project does not declare.

    Its address and login would be missing, and Spark would complain about options that stand in no file.
    """
    known = subject.project.connections
    for node in (*subject.pipeline.sources, *subject.pipeline.sinks):
        name = getattr(node.spec, "connection", None)
        if name is not None and name not in known:
            yield (
                f"there is no connection `{name}`{did_you_mean(name, known)}",
                "declare it under `connections:` in penstock.yaml",
                node.origin.at("connection"),
            )
