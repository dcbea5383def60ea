"""Write the connector lock files anew from the table below: `python scripts/lock_connectors.py`.

Every jar of a connector is named, since nothing is resolved transitively. Jars that Spark ships are left out.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from penstock.engine.connectors import LOCKS, WITHOUT_SPARK, Coordinate, LockedJar, retrieve, sha256_of
from penstock.engine.java import require_java


def kafka(spark: str) -> list[str]:
    return [
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",  # works under Spark 4.1 to 4.3
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
        "org.scala-lang.modules:scala-parallel-collections_2.13:1.2.0",
    ]


def delta(spark_minor: str) -> list[str]:
    return [f"io.delta:delta-spark_{spark_minor}_2.13:4.4.0", "io.delta:delta-storage:4.4.0"]


AVRO = ["org.apache.spark:spark-avro_2.13:4.1.1"]
ICEBERG = ["org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"]
LOCAL_FS = ["com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"]
POSTGRESQL = ["org.postgresql:postgresql:42.7.14"]
FLINK_KAFKA = ["org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"]  # for `penstock bench`
KAFKA_BROKER = [
    "org.apache.kafka:kafka-clients:4.1.2",
    "org.apache.kafka:kafka-coordinator-common:4.1.2",
    "org.apache.kafka:kafka-group-coordinator-api:4.1.2",
    "org.apache.kafka:kafka-group-coordinator:4.1.2",
    "org.apache.kafka:kafka-metadata:4.1.2",
    "org.apache.kafka:kafka-raft:4.1.2",
    "org.apache.kafka:kafka-server-common:4.1.2",
    "org.apache.kafka:kafka-server:4.1.2",
    "org.apache.kafka:kafka-share-coordinator:4.1.2",
    "org.apache.kafka:kafka-storage-api:4.1.2",
    "org.apache.kafka:kafka-storage:4.1.2",
    "org.apache.kafka:kafka-tools-api:4.1.2",
    "org.apache.kafka:kafka-transaction-coordinator:4.1.2",
    "org.apache.kafka:kafka_2.13:4.1.2",
    "at.yawk.lz4:lz4-java:1.10.1",
    "com.dynatrace.hash4j:hash4j:0.22.0",
    "com.fasterxml.jackson.core:jackson-annotations:2.19.4",
    "com.fasterxml.jackson.core:jackson-core:2.19.4",
    "com.fasterxml.jackson.core:jackson-databind:2.19.4",
    "com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.19.4",
    "com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.19.4",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.19.4",
    "com.github.ben-manes.caffeine:caffeine:3.2.0",
    "com.github.luben:zstd-jni:1.5.6-10",
    "com.google.re2j:re2j:1.8",
    "com.typesafe.scala-logging:scala-logging_2.13:3.9.5",
    "com.yammer.metrics:metrics-core:2.2.0",
    "commons-beanutils:commons-beanutils:1.11.0",
    "commons-collections:commons-collections:3.2.2",
    "commons-digester:commons-digester:2.1",
    "commons-logging:commons-logging:1.3.5",
    "commons-validator:commons-validator:1.10.1",
    "net.sf.jopt-simple:jopt-simple:5.0.4",
    "net.sourceforge.argparse4j:argparse4j:0.7.0",
    "org.apache.logging.log4j:log4j-api:2.25.3",
    "org.apache.logging.log4j:log4j-core:2.25.3",
    "org.bitbucket.b_c:jose4j:0.9.6",
    "org.hdrhistogram:HdrHistogram:2.2.2",
    "org.jspecify:jspecify:1.0.0",
    "org.pcollections:pcollections:4.0.2",
    "org.scala-lang:scala-library:2.13.16",
    "org.scala-lang:scala-reflect:2.13.16",
    "org.slf4j:slf4j-api:1.7.36",
    "org.slf4j:slf4j-simple:1.7.36",  # the broker logs to its standard error
    "org.xerial.snappy:snappy-java:1.1.10.7",
    "org.yaml:snakeyaml:2.4",
]

TABLE: dict[str, dict[str, list[str]]] = {
    "4.1": {
        "avro": AVRO,
        "delta": delta("4.1"),
        "iceberg": ICEBERG,
        "kafka": kafka("4.1.3"),
        "local-fs": LOCAL_FS,
        "postgresql": POSTGRESQL,
    },
    "4.2": {
        "avro": AVRO,
        "delta": delta("4.2"),
        "kafka": kafka("4.2.0"),
        "local-fs": LOCAL_FS,
        "postgresql": POSTGRESQL,
    },
    "4.3": {
        "kafka": kafka("4.2.0"),
        "local-fs": LOCAL_FS,
        "postgresql": POSTGRESQL,
    },
    WITHOUT_SPARK: {"flink-kafka": FLINK_KAFKA, "kafka-broker": KAFKA_BROKER},
}


def lock(connectors: dict[str, list[str]], java: Path) -> dict[str, str]:
    """The lock file's text of each connector; raises KeyError with the coordinate of a jar that cannot be had."""
    coordinates = {name: [Coordinate(*text.split(":")) for text in texts] for name, texts in connectors.items()}
    with tempfile.TemporaryDirectory() as folder:
        arrived = retrieve([one for many in coordinates.values() for one in many], Path(folder), java)
        return {
            name: "# Written by scripts/lock_connectors.py\n"
            + "".join(f"{LockedJar(one, sha256_of(arrived[one]))}\n" for one in many)
            for name, many in coordinates.items()
        }


def main() -> None:
    java = require_java(os.environ).path
    locks = {}
    for spark_minor, connectors in TABLE.items():
        print(f"{spark_minor}: {', '.join(connectors)}", file=sys.stderr)
        locks[spark_minor] = lock(connectors, java)
    shutil.rmtree(LOCKS, ignore_errors=True)
    for spark_minor, texts in locks.items():
        for name, text in texts.items():
            path = LOCKS / spark_minor / f"{name}.lock"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
