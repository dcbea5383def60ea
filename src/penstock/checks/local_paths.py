"""The folders of the driver's machine that tasks read and write: on a cluster, each machine would use its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath

from penstock.checks.rule import Subject
from penstock.dead_letters.as_step import DeadLetters
from penstock.facts.deployment import Deployment
from penstock.lakes.tables import parts_of
from penstock.notation.masters import is_one_machine
from penstock.notation.paths import fixed_part, is_local, is_path, is_url, to_local
from penstock.notation.references import has_reference
from penstock.pipeline.model import Sink, Source
from penstock.problems import Where
from penstock.sinks.sink import SinkSpec
from penstock.sources.source import SourceSpec

FILES_OF_EACH_MACHINE = frozenset({"ca_file", "ssl_keystore_location", "ssl_truststore_location"})
"""Keys with a file that each machine has for itself. It fails aloud where the file is missing."""
_WAREHOUSE = "spark.sql.warehouse.dir"
_SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class LocalPath:
    """A folder, or a file, on the driver's machine."""

    path: str
    """Absolute, without `file:` and down to the first glob."""
    whose: str
    """What uses it, in the user's words."""
    remedy: str
    """The edit that names a place which every machine reaches."""
    where: Where
    has_scheme: bool = False

    def is_within(self, folder: str) -> bool:
        return PurePosixPath(self.path).is_relative_to(_plain(folder))


def local_paths(subject: Subject) -> Iterator[LocalPath]:
    """All that the pipeline names and that is known by now, the storage first."""
    project, storage = subject.project, subject.deployment.storage
    if storage is not None and is_local(storage):
        remedy = "write `storage: hdfs://namenode:8020/storage`"
        yield _local(storage, "`storage`", remedy, project.origin.at("storage"))
    for found in _of_nodes(subject):
        if storage is None or not is_local(storage) or not found.is_within(storage):
            yield found


def on_other_machines(deployment: Deployment) -> bool:
    """Do tasks run on machines that have disks of their own?"""
    return not is_one_machine(deployment.master)


def is_shared(found: LocalPath, deployment: Deployment) -> bool:
    """Does the project declare that every machine has it?"""
    return any(found.is_within(folder) for _, folder in deployment.shared)


def means_another_file_system(found: LocalPath, deployment: Deployment) -> bool:
    """Is it a plain path, which Penstock takes for the local disk and Spark looks for elsewhere?"""
    return not found.has_scheme and not is_local(deployment.file_system)


def table_path(node: Source | Sink, location: str) -> LocalPath | None:
    """The folder of a table, where it is local."""
    if not is_local(location):
        return None
    remedy = "name a table whose files every machine reaches"
    return _local(location, f"the table of {_named(node)}", remedy, node.origin.at("table"))


def _of_nodes(subject: Subject) -> Iterator[LocalPath]:
    pipeline = subject.pipeline
    nodes: tuple[Source | Sink, ...] = (*pipeline.sources, *pipeline.sinks)
    for node in nodes:
        if isinstance(node, Sink) and pipeline.puts_aside(node.of):
            yield from _of_dead_letters(subject, node)
            continue
        for keys, written in _paths_in(node.spec):
            if not has_reference(written) and is_local(written):
                key = ".".join(keys)
                remedy = f"write `{key}: hdfs://namenode:8020/{node.name}`"
                whose = f"`{key}` of {_named(node)}"
                yield _local(subject.path(written), whose, remedy, node.origin.at(*keys))
        yield from _of_table(subject, node)


def _of_dead_letters(subject: Subject, sink: Sink) -> Iterator[LocalPath]:
    written = getattr(sink.spec, "path", None)
    if written is None or has_reference(written) or not is_local(written):
        return
    origin = subject.pipeline.origin
    declared = origin.at("dead_letters", "path")
    where = declared if declared != origin.where else sink.origin.where
    remedy = f"write `dead_letters: {{type: {sink.spec.type}, path: 'hdfs://namenode:8020/dead_letters'"
    remedy += ", format: parquet}`" if sink.spec.type == "files" else "}`"
    step = subject.pipeline.nodes[sink.of].spec
    node = step.dead_letters if isinstance(step, DeadLetters) else sink.of
    yield _local(subject.path(written), f"the folder of the dead letters of `{node}`", remedy, where)


def _of_table(subject: Subject, node: Source | Sink) -> Iterator[LocalPath]:
    """A table in a warehouse of which the settings alone say where it is."""
    table = getattr(node.spec, "table", None)
    if not isinstance(table, str) or node.spec.type not in ("delta", "iceberg", "table") or has_reference(table):
        return
    if getattr(node.spec, "path", None):
        return
    settings = subject.deployment.settings
    catalog = catalog_of(table, subject.deployment)
    if catalog == _SESSION_CATALOG:
        if settings.get("spark.sql.catalogImplementation") == "hive":
            return  # its metastore knows
        key, place = _WAREHOUSE, subject.project.origin.at("spark", _WAREHOUSE)
        warehouse = settings.get(key, str(subject.project.local_folder / "warehouse"))
        remedy = f"write `spark: {{{_WAREHOUSE}: 'hdfs://namenode:8020/warehouse'}}` in penstock.yaml"
    else:
        key = f"spark.sql.catalog.{catalog}.warehouse"
        if settings.get(f"spark.sql.catalog.{catalog}.type") != "hadoop" or key not in settings:
            return
        warehouse = settings[key]
        place = subject.project.origin.at("catalogs", catalog, "warehouse")
        remedy = f"write `warehouse: hdfs://namenode:8020/{catalog}` under `catalogs: {catalog}:` in penstock.yaml"
    if is_local(warehouse):
        where = node.origin.at("table") if place == subject.project.origin.where else place
        whose = f"the warehouse of table `{table}` of {_named(node)}"
        yield _local(subject.path(warehouse), whose, remedy, where)


def catalog_of(table: str, deployment: Deployment) -> str:
    """The catalog that a table is in."""
    try:
        first, *others = parts_of(table)
    except ValueError:
        first, *others = table.split(".")
    known = f"spark.sql.catalog.{first}" in deployment.settings
    if others and (known or len(others) > 1):
        return first
    return deployment.settings.get("spark.sql.defaultCatalog", _SESSION_CATALOG)


def _paths_in(spec: SourceSpec | SinkSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if name not in FILES_OF_EACH_MACHINE and isinstance(value, str) and is_path(field.annotation, field.metadata):
            yield (field.alias or name,), value
    options = getattr(spec, "spark_options", {})
    for name, value in options.items():
        if isinstance(value, str) and (name.lower() == "path" or value.startswith("file:/")):
            yield ("spark_options", name), value


def _local(path: str, whose: str, remedy: str, where: Where) -> LocalPath:
    return LocalPath(_plain(fixed_part(path)), whose, remedy, where, is_url(path))


def _plain(path: str) -> str:
    return normpath(str(to_local(path)))


def _named(node: Source | Sink) -> str:
    return f"{'source' if isinstance(node, Source) else 'sink'} `{node.name}`"
