"""On a cluster: are the folders of a pipeline the same on every machine? Asked before anything is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from penstock import spark_internals
from penstock.checks.local_paths import (
    LocalPath,
    catalog_of,
    is_shared,
    local_paths,
    on_other_machines,
    table_path,
)
from penstock.checks.rule import Subject
from penstock.checks.rules.clusters import folder_of_one_machine, path_without_scheme
from penstock.engine import resolve, shared_folders
from penstock.engine.session import Engine
from penstock.engine.shared_folders import CannotWrite, NotProven, Unshared
from penstock.facts.deployment import Deployment
from penstock.lakes.tables import parts_of
from penstock.notation.sql_text import quoted
from penstock.pipeline.model import Pipeline, Sink, Source
from penstock.pipeline.project import Project
from penstock.prepare.judging import Judged
from penstock.problems import Problem, Where

_URL = "use a URL that every machine reaches, such as `hdfs://namenode:8020/…`"


def sharing_problems(engine: Engine, judged: Judged) -> list[Problem]:
    """What is wrong with the local paths of pipelines under the master that Spark really has."""
    deployment = _deployment(engine, judged.project)
    problems: list[Problem] = []
    paths: list[LocalPath] = []
    for pipeline in judged.resolved:
        subject = Subject(judged.project, pipeline, resolved=True, deployment=deployment)
        problems += (*folder_of_one_machine(subject), *path_without_scheme(subject))
        if on_other_machines(deployment):
            paths += local_paths(subject)
            for found in _tables(engine, pipeline, deployment):
                paths.append(found)
                problems += () if is_shared(found, deployment) else [_table_is_local(found, deployment)]
    if problems or not paths:
        return list(dict.fromkeys(problems))
    return list(_proven(engine, judged.project, deployment, paths))


def _deployment(engine: Engine, project: Project) -> Deployment:
    """What the project says, and where it differs, what the running Spark has: somebody else may have started it."""
    written = resolve.deployment(project, os.environ)
    context = engine.spark.sparkContext
    file_system = str(spark_internals.hadoop_conf(engine.spark).get("fs.defaultFS"))
    real = replace(written, master=str(context.master), file_system=file_system)
    if engine.is_local:  # a hundred calls of the JVM for nothing
        return real
    own = dict(context.getConf().getAll())
    warehouse = {"spark.sql.warehouse.dir": str(engine.spark.conf.get("spark.sql.warehouse.dir"))}
    return replace(real, settings={**written.settings, **own, **warehouse})


def _tables(engine: Engine, pipeline: Pipeline, deployment: Deployment) -> Iterator[LocalPath]:
    """The folders of tables whose catalog alone knows where they are."""
    nodes: tuple[Source | Sink, ...] = (*pipeline.sources, *pipeline.sinks)
    for node in nodes:
        table = getattr(node.spec, "table", None)
        if not isinstance(table, str) or node.spec.type not in ("delta", "iceberg", "table"):
            continue
        location = _location(engine, table, catalog_of(table, deployment))
        found = location and table_path(node, location)
        if found:
            yield found


def _location(engine: Engine, table: str, catalog: str) -> str | None:
    """Where a table keeps its files, or where one that is made there will; None if its catalog does not say."""
    from pyspark.errors import PySparkException

    try:
        parts = parts_of(table)
    except ValueError:
        return None
    names = parts[1:] if parts[0] == catalog and len(parts) > 1 else parts
    namespace = names[:-1] or ("default",)
    asked = (
        f"DESCRIBE TABLE EXTENDED {'.'.join(map(quoted, (catalog, *namespace, names[-1])))}",
        f"DESCRIBE NAMESPACE EXTENDED {'.'.join(map(quoted, (catalog, *namespace)))}",
    )
    for sql in asked:
        try:
            told = {str(row[0]): str(row[1]) for row in engine.session({}).sql(sql).collect()}
        except PySparkException:
            continue  # there is no such table yet, or its catalog does not say
        if "Location" in told:
            return told["Location"]
    return None


def _table_is_local(found: LocalPath, deployment: Deployment) -> Problem:
    message = (
        f"{found.whose} is in `{found.path}`, a local folder. `{deployment.master}` runs tasks on other machines,"
        " which have disks of their own"
    )
    fix = (
        f"{found.remedy}; or, if every machine mounts the folder under this path, write `shared_paths:"
        f" [{found.path}]` in penstock.yaml"
    )
    return Problem(folder_of_one_machine.code, message, fix, found.where)


def _proven(engine: Engine, project: Project, deployment: Deployment, paths: list[LocalPath]) -> Iterator[Problem]:
    """Whether executors share with the driver what the project declares."""
    declared: dict[str, tuple[str, Where]] = {}
    for found in paths:
        number, root = next((n, folder) for n, folder in deployment.shared if found.is_within(folder))
        folder = shared_folders.existing(found.path)
        declared.setdefault(folder, (root, project.origin.at("shared_paths", number)))
    try:
        for unshared in shared_folders.unshared(engine.spark, tuple(declared)):
            yield _not_shared(unshared, *declared[unshared.folder])
    except CannotWrite as error:
        root, where = declared[error.folder]
        yield Problem(
            "CLUSTER003",
            f"`shared_paths` declares `{root}`, and the driver cannot write to `{error.folder}`: {error.said}",
            f"give this user the right to write to `{error.folder}`, or {_URL}",
            where,
        )
    except NotProven as error:
        yield Problem(
            "CLUSTER004",
            f"it could not be found out whether every executor of `{deployment.master}` shares"
            f" {', '.join(f'`{folder}`' for folder in declared)} with the driver: {error}",
            "make sure that every worker runs, has a free core and a `python3` of the driver's version (or set"
            " `PYSPARK_PYTHON` to one); the cause of a task that failed is in the log of its executor",
            project.origin.at("shared_paths"),
        )


def _not_shared(unshared: Unshared, root: str, where: Where) -> Problem:
    folder, host = unshared.folder, unshared.host
    said = f": {unshared.said}" if unshared.said else ""
    seen = {
        "not seen by executor": f"an executor on `{host}` does not see the file that the driver wrote to"
        f" `{folder}`{said}",
        "not seen by driver": f"the driver does not see the file that an executor on `{host}` wrote to `{folder}`",
        "not written by executor": f"an executor on `{host}` cannot write to `{folder}`{said}",
    }[unshared.outcome]
    fix = (
        f"give the user of the executors on `{host}` the right to write to `{folder}`"
        if unshared.outcome == "not written by executor"
        else f"mount the driver's `{root}` on `{host}` under the same path, or take it out of `shared_paths` and {_URL}"
    )
    return Problem("CLUSTER003", f"`shared_paths` declares `{root}`, and {seen}", fix, where)
