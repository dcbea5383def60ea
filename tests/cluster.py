"""A small standalone cluster from PySpark's own wheel, whose workers see other disks than the driver does."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

_DEPLOY = "org.apache.spark.deploy"
_APART = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
_MOUNTS = """
mount -t tmpfs none "$HIDDEN"
[ "$NUMBER" = 1 ] || mount -t tmpfs none "$HALF"
mount --bind "$READ_ONLY" "$READ_ONLY" && mount -o remount,bind,ro "$READ_ONLY"
mount -t tmpfs none "$UPPER" && mkdir "$UPPER/files" "$UPPER/work"
mount -t overlay none -o "lowerdir=$COVERED,upperdir=$UPPER/files,workdir=$UPPER/work" "$COVERED"
exec "$@"
"""


@dataclass(frozen=True)
class Cluster:
    """The address of its master, and folders by what the workers see of them."""

    master: str
    hidden: Path
    """Empty for workers."""
    half: Path
    """Empty for the second worker."""
    read_only: Path
    """The driver's, and workers cannot write to it."""
    covered: Path
    """The driver's, and what workers write to it stays with them."""
    shared: Path
    """The same for all."""

    @property
    def settings(self) -> str:
        """Of a project that runs on it, on both of its workers."""
        cores = "spark.executor.cores: 1, spark.cores.max: 2"
        return f"spark: {{spark.master: '{self.master}', spark.executor.memory: 512m, {cores}}}\n"


def can_hide_folders() -> bool:
    """May this user give a process mounts of its own?"""
    return shutil.which("unshare") is not None and subprocess.run([*_APART, "true"], check=False).returncode == 0


@contextmanager
def started(folder: Path) -> Iterator[Cluster]:
    """A master with two workers of one core."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    places = {name: folder / name for name in ("hidden", "half", "read_only", "covered", "shared")}
    for place in (*places.values(), folder / "upper"):
        place.mkdir()
    cluster = Cluster(f"spark://127.0.0.1:{port}", **places)
    home = Path(pyspark.__file__).parent
    environ = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "HIDDEN": str(cluster.hidden),
        "HALF": str(cluster.half),
        "READ_ONLY": str(cluster.read_only),
        "COVERED": str(cluster.covered),
        "UPPER": str(folder / "upper"),
    }
    log = folder / "cluster.log"
    ours = ("--host", "127.0.0.1", "--webui-port", "0")
    start = home / "bin/spark-class"
    apart = (*_APART, "sh", "-ec", _MOUNTS, "sh")
    commands: list[tuple[str | Path, ...]] = [(start, f"{_DEPLOY}.master.Master", "--port", str(port), *ours)]
    for number in (1, 2):
        work = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
        worker = (start, f"{_DEPLOY}.worker.Worker", cluster.master, *work, *ours)
        commands.append(("env", f"NUMBER={number}", *apart, *worker))
    with ExitStack() as cleanup:
        for command in commands:
            out = cleanup.enter_context(log.open("ab"))
            begun = subprocess.Popen(command, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            daemon = cleanup.enter_context(begun)
            cleanup.callback(daemon.terminate)
        deadline = time.monotonic() + 300
        while log.read_text().count("Successfully registered with master") < 2:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield cluster
