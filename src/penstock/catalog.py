"""The one readable list of all parts: alphabetical, then those of other installed packages.

To add a part, write its one file and name it here. Another package adds one through an entry point in the group
`penstock.sources`, `penstock.steps` or `penstock.sinks`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from penstock.connections import http, kafka, postgres
from penstock.connections.connection import ConnectionSpec
from penstock.lakes.catalogs import CatalogSpec, Custom, Hive, IcebergCatalog
from penstock.sinks import console, memory
from penstock.sinks import delta as delta_sink
from penstock.sinks import files as files_sink
from penstock.sinks import http as http_sink
from penstock.sinks import iceberg as iceberg_sink
from penstock.sinks import jdbc as jdbc_sink
from penstock.sinks import kafka as kafka_sink
from penstock.sinks import postgres as postgres_sink
from penstock.sinks import python as python_sink
from penstock.sinks import spark as spark_sink
from penstock.sinks import table as table_sink
from penstock.sinks.sink import SinkSpec
from penstock.sources import delta, files, iceberg, rate, rate_micro_batch, socket, spark, table
from penstock.sources import kafka as kafka_source
from penstock.sources import postgres as postgres_source
from penstock.sources.source import SourceSpec
from penstock.spec import Part
from penstock.transforms import deduplicate, pandas_state, process, python, sql
from penstock.transforms.step import StepSpec

CONNECTIONS: tuple[type[ConnectionSpec], ...] = (
    http.Http,
    kafka.Kafka,
    postgres.Postgres,
)
SPARK_CATALOGS: tuple[type[CatalogSpec], ...] = (
    Custom,
    Hive,
    IcebergCatalog,
)
SOURCES: tuple[type[SourceSpec], ...] = (
    delta.Delta,
    files.Files,
    iceberg.Iceberg,
    kafka_source.Kafka,
    postgres_source.Postgres,
    rate.Rate,
    rate_micro_batch.RateMicroBatch,
    socket.Socket,
    spark.Spark,
    table.Table,
)
STEPS: tuple[type[StepSpec], ...] = (
    deduplicate.Deduplicate,
    pandas_state.PandasState,
    process.Process,
    python.Python,
    sql.Sql,
)
SINKS: tuple[type[SinkSpec], ...] = (
    console.Console,
    delta_sink.Delta,
    files_sink.Files,
    http_sink.Http,
    iceberg_sink.Iceberg,
    jdbc_sink.Jdbc,
    kafka_sink.Kafka,
    memory.Memory,
    postgres_sink.Postgres,
    python_sink.Python,
    spark_sink.Spark,
    table_sink.Table,
)

P = TypeVar("P", bound=Part)


@cache
def connections() -> dict[str, type[ConnectionSpec]]:
    return {type_of(part): part for part in CONNECTIONS}


@cache
def spark_catalogs() -> dict[str, type[CatalogSpec]]:
    return {type_of(part): part for part in SPARK_CATALOGS}


@cache
def sources() -> dict[str, type[SourceSpec]]:
    return {type_of(part): part for part in (*SOURCES, *_of_others("penstock.sources", SourceSpec))}


@cache
def steps() -> dict[str, type[StepSpec]]:
    return {part.key: part for part in (*STEPS, *_of_others("penstock.steps", StepSpec))}


@cache
def sinks() -> dict[str, type[SinkSpec]]:
    return {type_of(part): part for part in (*SINKS, *_of_others("penstock.sinks", SinkSpec))}


def type_of(part: type[Part]) -> str:
    """The word that a user writes after `type:`."""
    return str(part.model_fields["type"].default)


@cache
def _entry_points() -> Any:
    return entry_points()  # reads a file of every installed package: once is enough


def _of_others(group: str, base: type[P]) -> list[type[P]]:
    found = [entry.load() for entry in sorted(_entry_points().select(group=group), key=lambda entry: entry.name)]
    return [part for part in found if isinstance(part, type) and issubclass(part, base)]
