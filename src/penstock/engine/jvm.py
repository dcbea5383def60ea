"""Starts the JVM of Spark, and connects to it.

PySpark's own start waits for the JVM in steps of a tenth of a second, and begins only when PySpark is imported. Here
the process is launched first; PySpark is imported while it starts.
"""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from penstock import spark_internals
from penstock.engine.jvm_archive import spark_home
from penstock.spark_internals import Jvm

_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the short-lived JVM in which Spark puts the command line together."""


@dataclass(frozen=True)
class Launched:
    """A JVM that is starting. It ends when its standard input is closed, or with this process."""

    process: subprocess.Popen[bytes]
    _folder: tempfile.TemporaryDirectory[str]

    def connect(self) -> Jvm:
        """The JVM, once it listens. Raises ChildProcessError when it ended instead."""
        with self._folder as folder:
            told = Path(folder, "connection")
            while not told.is_file():
                if self.process.poll() is not None:
                    raise ChildProcessError("Java gateway process exited before sending its port number.")
                time.sleep(0.01)
            answer = told.read_bytes()
        port, length = struct.unpack("!ii", answer[:8])
        return _connected(self.process, port, answer[8 : 8 + length].decode())


def launch(settings: Mapping[str, str], class_path_end: tuple[Path, ...], stderr: IO[bytes]) -> Launched:
    """Starts a JVM with these settings on its command line. Raises OSError.

    What stands at the end of the class path leaves a class-data archive usable; what stands before Spark's jars does
    not, and there `spark.driver.extraClassPath` would be put.
    """
    home = spark_home(os.environ)
    if home is None:
        raise FileNotFoundError("the folder of PySpark is not found")
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    folder = tempfile.TemporaryDirectory(prefix="penstock-")
    dist = [os.environ.get("SPARK_DIST_CLASSPATH", ""), *map(str, class_path_end)]
    environ = {
        "SPARK_LAUNCHER_OPTS": _LAUNCHER_OPTIONS,
        **os.environ,
        "SPARK_HOME": str(home),  # unknown, the script would start a Python to find it
        "SPARK_DIST_CLASSPATH": os.pathsep.join(filter(None, dist)),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(Path(folder.name, "connection")),
    }
    # A session of its own: a signal to our process group is ours to handle, and must not reach the JVM.
    process = subprocess.Popen(
        [home / "bin" / "spark-submit", *words],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
    return Launched(process, folder)


def _connected(process: subprocess.Popen[bytes], port: int, secret: str) -> Jvm:
    # With these set, PySpark launches no JVM of its own.
    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ |= told
    try:
        return spark_internals.connected(process)
    finally:
        for name in told:
            del os.environ[name]
