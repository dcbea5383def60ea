"""Clusters: which paths mean the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from penstock.checks.local_paths import is_shared, local_paths, means_another_file_system, on_other_machines
from penstock.checks.rule import Finding, Subject, rule


@rule(
    "CLUSTER001",
    needs="deployment",
    wrong="""
    # penstock.yaml
    name: shop
    spark: {spark.master: "spark://master:7077"}
    storage: /mnt/streams/storage
    """,
    right="""
    # penstock.yaml
    name: shop
    spark: {spark.master: "spark://master:7077"}
    storage: /mnt/streams/storage
    shared_paths: [/mnt/streams]
    """,
)
def folder_of_one_machine(subject: Subject) -> Iterator[Finding]:
    """Tasks on other machines would use a local folder.

    A path such as `out` is on the disk of the machine that uses it. Under a master that is not local, each executor
    writes its rows to a disk of its own. The driver then commits a batch whose files it does not have, and no query
    fails. Use a URL that every machine reaches. If each machine mounts the folder under the same path, declare it in
    `shared_paths`; Penstock then proves it before each run.
    """
    deployment = subject.deployment
    if not on_other_machines(deployment):
        return
    for found in local_paths(subject):
        if means_another_file_system(found, deployment) or is_shared(found, deployment):
            continue
        folder, root = PurePosixPath(found.path), PurePosixPath(subject.project.root)
        shown = folder.relative_to(root) if folder.is_relative_to(root) and folder != root else folder
        yield (
            f"{found.whose} is `{found.path}`, a local folder. `{deployment.master}` runs tasks on other machines,"
            " which have disks of their own",
            f"{found.remedy}; or, if every machine mounts the folder under this path, write `shared_paths: [{shown}]`"
            " in penstock.yaml",
            found.where,
        )


@rule(
    "CLUSTER002",
    needs="deployment",
    wrong="""
    # penstock.yaml
    name: shop
    spark: {spark.hadoop.fs.defaultFS: "hdfs://namenode:8020"}
    storage: /streams/storage
    """,
    right="""
    # penstock.yaml
    name: shop
    spark: {spark.hadoop.fs.defaultFS: "hdfs://namenode:8020"}
    storage: hdfs://namenode:8020/streams/storage
    """,
)
def path_without_scheme(subject: Subject) -> Iterator[Finding]:
    """A path without a scheme means one place to Penstock and another to Spark.

    Penstock takes it for the local disk. With `spark.hadoop.fs.defaultFS`, Spark looks for it on that file system. A
    checkpoint would be in two halves: the identity on one side, the offsets on the other.
    """
    deployment = subject.deployment
    for found in local_paths(subject):
        if means_another_file_system(found, deployment):
            address = f"{deployment.file_system.rstrip('/')}{found.path}"
            yield (
                f"{found.whose} is `{found.path}`, without a scheme: Penstock uses the local disk, and Spark uses"
                f" `{deployment.file_system}`",
                f"write `{address}`, or `file:{found.path}` for the local disk",
                found.where,
            )
