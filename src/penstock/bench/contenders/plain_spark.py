"""Plain PySpark, as people write it: at its defaults, with one shuffle partition, and tuned by an expert."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from penstock.bench.contenders.contender import HELD, Contender, Launch, Progress
from penstock.bench.job import Job
from penstock.bench.workloads.every_workload import named
from penstock.bench.workloads.workload import Workload
from penstock.engine import connectors
from penstock.engine.java import require_java
from penstock.engine.session import LOOPBACK, installed_version
from penstock.engine.spark_versions import minor
from penstock.spark_internals import reports_since

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITIONS = "spark.sql.shuffle.partitions"
_PROGRESS = "progress.json"


@dataclass(frozen=True)
class Tuning:
    """What is set by hand."""

    settings: Mapping[str, str] = field(default_factory=dict)
    kafka_options: Mapping[str, str] = field(default_factory=dict)
    """Of the reader."""
    draining_reader: Mapping[str, str] = field(default_factory=dict)
    draining_writer: Mapping[str, str] = field(default_factory=dict)
    """Further options of the two where a query takes all that waits: larger requests."""
    stateless_options: Mapping[str, str] = field(default_factory=dict)
    """Options of the writer of a query from Kafka that keeps no state and runs on."""
    jars: tuple[str, ...] = ()


def expert(cores: int) -> Tuning:
    """What somebody sets who knows where the time of a small batch goes: tasks, files of the checkpoint, long polls."""
    managers = "org.apache.spark.sql.execution.streaming.checkpointing"
    return Tuning(
        {
            _PARTITIONS: str(cores),
            "spark.ui.enabled": "false",
            "spark.sql.streaming.checkpointFileManagerClass": f"{managers}.FileSystemBasedCheckpointFileManager",
            "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        }
        | connectors.settings(["local-fs"]),
        {"kafka.fetch.max.wait.ms": "10"},
        draining_reader={"kafka.max.poll.records": "5000", "kafka.max.partition.fetch.bytes": "8388608"},
        draining_writer={"kafka.linger.ms": "20", "kafka.batch.size": "262144"},
        stateless_options={"asyncProgressTrackingEnabled": "true"},
        jars=("local-fs",),
    )


def launch(tuning: Tuning, workload: Workload, job: Job) -> Launch:
    told = json.dumps({"job": asdict(job), "tuning": asdict(tuning)})
    local = {"SPARK_LOCAL_IP": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
    return Launch((sys.executable, "-m", __name__, told), local)


def prepare(tuning: Tuning) -> None:
    _jars(tuning)


def run(job: Job, tuning: Tuning) -> None:
    """Until it is ended, or has taken all that is there."""
    workload = named(job.workload)
    spark = session(replace(tuning, settings={**tuning.settings, **workload.settings}))
    writer = (
        workload.in_plain_spark(records_of(spark, workload, job, tuning), job)
        .writeStream.format("kafka")
        .outputMode(workload.mode)
        .option("kafka.bootstrap.servers", job.servers)
        .option("topic", job.output)
        .option("checkpointLocation", str(Path(job.folder) / "checkpoint"))
    )
    if job.drains:
        writer = writer.trigger(availableNow=True).options(**tuning.draining_writer)
    elif workload.trigger:
        writer = writer.trigger(processingTime=workload.trigger)
    if not job.drains and not workload.keeps_state and workload.reads == "topic":
        writer = writer.options(**tuning.stateless_options)
    query = writer.start()
    asked = Event()
    signal.signal(signal.SIGTERM, lambda number, frame: asked.set())
    # A wait without an end could not be broken off: the JVM answers one call of a thread at a time.
    while not asked.is_set() and not query.awaitTermination(1):
        pass
    batches = [json.loads(report)["durationMs"] for report in reversed([*reports_since(query, -1)])]
    (Path(job.folder) / _PROGRESS).write_text(json.dumps(batches))


def progress(folder: Path) -> Progress | None:
    """Of the newest batches, a hundred at most."""
    with contextlib.suppress(FileNotFoundError):
        batches: list[dict[str, int]] = json.loads((folder / _PROGRESS).read_text())
        phases = dict.fromkeys(phase for batch in batches for phase in batch)
        spent = {phase: sum(batch.get(phase, 0) for batch in batches) for phase in phases}
        return Progress(len(batches), spent) if batches else None
    return None


def records_of(spark: SparkSession, workload: Workload, job: Job, tuning: Tuning) -> DataFrame:
    """The records as Spark's source gives them, with a column `value`."""
    if workload.reads == "folder":
        return spark.readStream.text(job.input)
    options = {"kafka.bootstrap.servers": job.servers, "subscribe": job.input, "startingOffsets": "earliest"}
    chosen = {**tuning.kafka_options, **(tuning.draining_reader if job.drains else {})}
    return spark.readStream.format("kafka").options(**options, **chosen).load()


def session(tuning: Tuning) -> SparkSession:
    """A Spark with the jars that Penstock would use, on all cores of this machine."""
    from pyspark.sql import SparkSession

    jars = _jars(tuning)
    settings = {
        "spark.master": "local[*]",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.showConsoleProgress": "false",
        "spark.network.timeout": HELD,
        "spark.jars": ",".join(map(str, jars)),
        # The driver opens files before it reads `spark.jars`.
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars if "local-fs" in jar.name),
    }
    builder = SparkSession.builder.appName("bench")
    for key, value in (settings | dict(tuning.settings)).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _jars(tuning: Tuning) -> tuple[Path, ...]:
    java = require_java(os.environ)
    return connectors.ensure(["kafka", *tuning.jars], minor(installed_version()), java.path)


def no_shuffle(workload: Workload) -> str | None:
    return None if workload.keeps_state else "without a shuffle it is the same as `pyspark`"


def _contender(name: str, title: str, tuning: Tuning) -> Contender:
    return Contender(name, title, partial(launch, tuning), progress=progress, prepare=partial(prepare, tuning))


DEFAULTS = _contender("pyspark", "plain PySpark at its defaults", Tuning())
NAIVE = replace(
    _contender("naive", "plain PySpark with one shuffle partition, and nothing else", Tuning({_PARTITIONS: "1"})),
    cannot=no_shuffle,
)
TUNED = _contender("tuned", "plain PySpark tuned by an expert", expert(os.cpu_count() or 1))

if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    run(Job(**told["job"]), Tuning(**told["tuning"]))
