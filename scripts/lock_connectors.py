"""Write the connector lock files anew from the table below: `python scripts/lock_connectors.py`.

Every jar of a connector is named, since nothing is resolved transitively. Jars that Spark ships are left out.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from penstock.engine.connectors import LOCKS, Coordinate, LockedJar, retrieve, sha256_of
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
        print(f"Spark {spark_minor}: {', '.join(connectors)}", file=sys.stderr)
        locks[spark_minor] = lock(connectors, java)
    shutil.rmtree(LOCKS, ignore_errors=True)
    for spark_minor, texts in locks.items():
        for name, text in texts.items():
            path = LOCKS / spark_minor / f"{name}.lock"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
